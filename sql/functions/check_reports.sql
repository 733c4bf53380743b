-- does: refuses malformed reports before anything is deleted.
-- called by: report_steps.
-- locks: nothing.
-- raises: PW016 naming the first bad report.
create or replace function pawl.check_reports(reports jsonb) returns void language plpgsql as $$
declare
  bad jsonb;
begin
  select r into bad from jsonb_array_elements(reports) r
  where jsonb_typeof(r) <> 'object' or jsonb_typeof(r->'msg_id') is distinct from 'number'
    or jsonb_typeof(r->'read_ct') is distinct from 'number'
    or coalesce(r->>'status', '') not in ('complete', 'failed', 'rejected')
    or (r->>'status' <> 'complete' and jsonb_typeof(r->'error') is distinct from 'object')
    or octet_length(r::text) > 1048576
    or exists (select from jsonb_object_keys(case jsonb_typeof(r) when 'object' then r else '{}' end) field
      where field not in ('msg_id', 'read_ct', 'status', 'result', 'error'))
  limit 1;
  if found then
    raise exception 'malformed report for message %', coalesce(bad->>'msg_id', '?') using errcode = 'PW016',
      hint = 'A report is {msg_id, read_ct, status: complete|failed|rejected, result?, error?: {type, message, retryable, '
        'retry_after?}} of at most 1 MiB; failed and rejected need an error.';
  end if;
end $$;
