-- does: what no claim does on queues that only PGMQ workers read: ends attempts whose message was delivered max_deliveries
--   times and is visible again, and absorbs messages of attempts that have ended. Up to 1,000 messages of a queue, and 2,000 in
--   all, of the queues whose turn it is (queues_in_turn).
-- called by: reconcile, once a pass.
-- locks: messages, skip locked.
-- raises: nothing.
create or replace function pawl.reconcile_queues(grace interval) returns jsonb language plpgsql as $$
declare
  name text;
  one record;
  s pawl.steps;
  ended int := 0;
  absorbed int := 0;
begin
  foreach name in array pawl.queues_in_turn(array(select q.queue from pawl.queues q where not q.engine)) loop
    exit when ended + absorbed >= 2000;
    for one in execute format($q$
      select m.msg_id, m.read_ct, x.task_id, m.message->>'step' as step, coalesce(m.message->>'index', '0')::int as index,
        (m.message->>'attempt')::int as attempt, s.task_id is not null as current
      from pgmq.%I m
      cross join lateral (select pawl.as_uuid(m.message->>'task_id') as task_id) x
      left join lateral (select p.task_id from pawl.steps p -- offset 0: by its whole key
        where p.task_id = x.task_id and p.step = m.message->>'step'
          and p.index = case when coalesce(m.message->>'index', '0') ~ '^[0-9]{1,9}$' then coalesce(m.message->>'index', '0')::int end
          and p.attempt::text = m.message->>'attempt' and p.state in ('enqueued', 'in_progress') offset 0) s on true
      where x.task_id is not null and m.vt <= clock_timestamp() and m.message->>'attempt' ~ '^[0-9]{1,9}$'
        and coalesce(m.message->>'index', '0') ~ '^[0-9]{1,9}$'
        and case when s.task_id is null then m.enqueued_at < clock_timestamp() - $1
          else m.read_ct >= case when m.headers->>'max_deliveries' ~ '^[0-9]{1,9}$' then (m.headers->>'max_deliveries')::int else 10 end end
        and not exists (select from pawl.entity_claims c where c.task_id = x.task_id and c.step = m.message->>'step')
      order by m.msg_id limit least(1000, 2000 - $2) for update of m skip locked $q$, 'q_' || name) using grace, ended + absorbed
    loop
      execute format('delete from pgmq.%I m where m.msg_id = $1', 'q_' || name) using one.msg_id;
      -- Looked at again: its attempt may have ended since, and a later one is in good health.
      select * into s from pawl.steps x where x.task_id = one.task_id and x.step = one.step and x.index = one.index
        and x.attempt = one.attempt and x.state in ('enqueued', 'in_progress');
      if found and one.current then
        perform pawl.send_crash_result(s, format('delivered %s times without a result', one.read_ct));
        ended := ended + 1;
      else
        insert into pawl.absorbed (queue, msg_id, task_id, step, index, attempt, reason)
        values (name, one.msg_id, one.task_id, one.step, one.index, one.attempt, 'stale message');
        absorbed := absorbed + 1;
      end if;
    end loop;
  end loop;
  return jsonb_build_object('ended', ended, 'absorbed', absorbed);
end $$;
