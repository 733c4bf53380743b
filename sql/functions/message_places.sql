-- does: where the messages of a task's current attempts stand in their queues: ahead counts the visible messages before it.
--   A queue whose table is gone has none.
-- called by: explain_task.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.message_places(id uuid)
returns table (step text, index int, msg_id bigint, read_count int, visible_at timestamptz, ahead bigint)
language plpgsql stable as $$
declare
  name text;
begin
  for name in select distinct s.queue from pawl.steps s where s.task_id = id and s.state in ('enqueued', 'in_progress') loop
    continue when pawl.queue_table(name) is null;
    return query execute format($q$
      select s.step, s.index, m.msg_id, m.read_ct, m.vt, m.ahead
      from (select q.msg_id, q.read_ct, q.vt, q.message,
          count(*) filter (where q.vt <= clock_timestamp()) over (order by q.msg_id rows between unbounded preceding and 1 preceding) as ahead
        from pgmq.%I q) m
      join pawl.steps s on s.task_id::text = m.message->>'task_id' and s.step = m.message->>'step'
        and s.index::text = coalesce(m.message->>'index', '0') and s.attempt::text = m.message->>'attempt'
      where s.task_id = $1 and s.queue = $2 and s.state in ('enqueued', 'in_progress') $q$, 'q_' || name) using id, name;
  end loop;
end $$;
