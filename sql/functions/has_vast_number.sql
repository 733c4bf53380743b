-- does: says whether a number in it has an exponent of a thousand or more, either way. A few bytes hold it, but as text it is
--   written out in full: thousands of them are gigabytes, which no reader of the text survives.
-- called by: the read of task requests, is_plain_request, read_reports, apply_step_results, folded into their statements.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.has_vast_number(body jsonb) returns boolean language sql immutable as $$
  select jsonb_path_exists(body, 'strict $.** ? (@.type() == "number" && (@ >= 1e1000 || @ <= -1e1000 || @ <= 1e-1000 && @ >= -1e-1000 && @ != 0))')
$$;
