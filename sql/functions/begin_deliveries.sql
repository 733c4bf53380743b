-- does: begins the deliveries of step messages that were just read. A message over its delivery limit becomes a failed
--   result of type crash; a stale one is absorbed; one whose step somebody holds is back soon.
-- called by: claim_steps, in a sub-transaction.
-- locks: step rows, skip locked; no task row.
-- raises: what a malformed message raises (refuse_delivery ends it).
create or replace function pawl.begin_deliveries(queue text, batch pawl.delivery[], worker text) returns json
language plpgsql as $$
#variable_conflict use_column
declare
  at timestamptz := pawl.now();
  own text := worker;
  begun bigint[];
  answer text;
begin
  with asked as materialized (
    select d.msg_id, d.read_ct, d.message, d.headers, (d.message->>'task_id')::uuid as task_id, d.message->>'step' as step,
      coalesce((d.message->>'index')::int, 0) as index, (d.message->>'attempt')::int as attempt,
      (d.headers->>'timeout_ms')::float as timeout_ms
    from unnest(batch) d
    where d.read_ct <= coalesce((d.headers->>'max_deliveries')::int, 10) and not coalesce((d.headers->>'claim')::boolean, false)),
  free as materialized (
    select a.* from asked a
    join pawl.steps s on s.task_id = a.task_id and s.step = a.step and s.index = a.index
    where s.attempt = a.attempt and s.state in ('enqueued', 'in_progress')
    for no key update of s skip locked),
  moved as (
    update pawl.steps s set state = 'in_progress', revision = s.revision + 1, deliveries = f.read_ct, worker = own,
      state_since = at,
      due_at = case when s.state = 'in_progress' then s.due_at else at + f.timeout_ms * interval '1 ms' end
    from free f
    where s.task_id = f.task_id and s.step = f.step and s.index = f.index
      and s.attempt = f.attempt and s.state in ('enqueued', 'in_progress')
    returning f.msg_id, f.read_ct, f.message, f.headers)
  select array_agg(m.msg_id), string_agg(pawl.delivery_text(m.msg_id, m.read_ct, m.message, m.headers), ',' order by m.msg_id)
  into begun, answer from moved m;

  if coalesce(cardinality(begun), 0) < cardinality(batch) then
    begun := pawl.begin_special_deliveries(queue, batch, coalesce(begun, '{}'), worker);
    answer := concat_ws(',', answer, (select string_agg(pawl.delivery_text(d.msg_id, d.read_ct, d.message, d.headers), ',')
      from unnest(batch) d where d.msg_id = any (begun)));
  end if;
  return '[' || coalesce(answer, '') || ']';
end $$;
