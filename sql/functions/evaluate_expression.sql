-- does: puts values of a task's input into a text with ${input.a.b} in it. Returns null when a value is missing, null, an
--   object or an array. A value is never looked at for further placeholders.
-- called by: step_keys, attach_ready_steps, begin_claimed_delivery.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.evaluate_expression(expr text, input jsonb) returns text language plpgsql immutable as $$
declare
  literals text[] := regexp_split_to_array(expr, '[$][{]input(?:[.][A-Za-z0-9_-]+)+[}]');
  answer text := literals[1];
  hole text[];
  value jsonb;
  n int := 1;
begin
  for hole in select regexp_matches(expr, '[$][{]input[.]([A-Za-z0-9_.-]+)[}]', 'g') loop
    value := pawl.canonical_json(input #> string_to_array(hole[1], '.'));
    if coalesce(jsonb_typeof(value), 'null') not in ('string', 'number', 'boolean') then
      return null;
    end if;
    n := n + 1;
    answer := answer || (value #>> '{}') || literals[n];
  end loop;
  return answer;
end $$;
