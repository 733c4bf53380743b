-- does: the messages of a batch that did not simply begin, one by one: over the delivery limit, with an entity claim,
--   stale, or held by somebody. Returns the ids of those that began after all.
-- called by: begin_deliveries.
-- locks: step rows, skip locked.
-- raises: what a malformed message raises.
create or replace function pawl.begin_special_deliveries(queue text, batch pawl.delivery[], begun bigint[], worker text)
returns bigint[] language plpgsql as $$
declare
  d pawl.delivery;
  s pawl.steps;
  started bigint[] := '{}';
  verdict text;
begin
  foreach d in array batch loop
    continue when d.msg_id = any (begun);
    select * into s from pawl.steps x where x.task_id = (d.message->>'task_id')::uuid and x.step = d.message->>'step'
      and x.index = coalesce((d.message->>'index')::int, 0);
    if not found and d.message->>'task_id' is null then
      raise exception 'not a step message' using errcode = 'PW015';
    elsif not found or s.attempt is distinct from (d.message->>'attempt')::int or s.state not in ('enqueued', 'in_progress') then
      execute format('select from pawl_queues.%I(array[$1], array[$2])', 'delete_' || queue) using d.msg_id, d.read_ct;
      insert into pawl.absorbed (queue, msg_id, task_id, step, index, attempt, reason)
      values (queue, d.msg_id, (d.message->>'task_id')::uuid, d.message->>'step', coalesce((d.message->>'index')::int, 0),
        (d.message->>'attempt')::int, 'stale delivery');
    elsif coalesce((d.headers->>'claim')::boolean, false) then
      verdict := pawl.begin_claimed_delivery(queue, d, worker);
      if verdict = 'begun' then
        started := started || d.msg_id;
      end if;
    elsif d.read_ct > coalesce((d.headers->>'max_deliveries')::int, 10) then
      execute format('select from pawl_queues.%I(array[$1], array[$2])', 'delete_' || queue) using d.msg_id, d.read_ct;
      perform pawl.send_crash_result(s, format('delivered %s times without a result', d.read_ct - 1));
    else
      perform pawl.put_off_delivery(queue, d, interval '600 ms');
    end if;
  end loop;
  return started;
end $$;
