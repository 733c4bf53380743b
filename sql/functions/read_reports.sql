-- does: refuses malformed reports before anything is deleted, and gives the fences of the others: ids and read counts.
-- called by: report_steps.
-- locks: nothing.
-- raises: PW016 naming the first bad report.
create or replace function pawl.read_reports(reports jsonb, out ids bigint[], out counts int[])
language plpgsql as $$
declare
  bad jsonb;
begin
  if jsonb_typeof(reports) <> 'array' then
    raise exception 'the reports are no array' using errcode = 'PW016', hint = 'Give [{msg_id, read_ct, status, ...}]; [] for none.';
  end if;
  begin
    with judged as materialized (
      select r, case when jsonb_typeof(r) <> 'object' then false
        when case when pg_column_size(r) < 512 then octet_length(r::text) >= 1000 end is not false and pawl.has_vast_number(r) then false
        else jsonb_typeof(r->'msg_id') is not distinct from 'number'
          and jsonb_typeof(r->'read_ct') is not distinct from 'number'
          and coalesce(r->>'status', '') in ('complete', 'failed', 'rejected')
          and (r->>'status' = 'complete' or jsonb_typeof(r->'error') is not distinct from 'object')
          and (pg_column_size(r) < 512 or octet_length(r::text) <= 1048576)
          and r - '{msg_id,read_ct,status,result,error}'::text[] = '{}' end as good
      from jsonb_array_elements(reports) r)
    select array_agg(case when j.good then (j.r->>'msg_id')::bigint end), array_agg(case when j.good then (j.r->>'read_ct')::int end),
      (array_agg(j.r) filter (where not j.good))[1]
    into ids, counts, bad from judged j;
  exception when invalid_text_representation or numeric_value_out_of_range then -- dearer to ask of each
    bad := coalesce((select jsonb_agg(r)->0 from jsonb_array_elements(reports) r where jsonb_typeof(r) = 'object'
      and not (r->>'msg_id' ~ '^-?[0-9]{1,18}$' and r->>'read_ct' ~ '^-?[0-9]{1,9}$')), '{}');
  end;
  if bad is not null then
    raise exception 'malformed report for message %', coalesce(bad->>'msg_id', '?') using errcode = 'PW016',
      hint = 'A report is {msg_id, read_ct, status: complete|failed|rejected, result?, error?: {type, message, retryable, '
        'retry_after?}} of at most 1 MiB; failed and rejected need an error.';
  end if;
end $$;
