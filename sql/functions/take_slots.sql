-- does: gives a concurrency slot to every attempt of a queue that is under way when it gets its first limit, so that they
--   count. An attempt that begins in the same moment may be missed: it began before the limit. One that ends in the same
--   moment leaves its slot behind: open_gate cleans it away, start_attempts makes it the next attempt's place.
-- called by: change_queue.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.take_slots(queue text) returns void language plpgsql as $$
begin
  execute format($q$
    insert into pawl.held_steps (task_id, step, index, queue, attempt, held_at, released_at)
    select s.task_id, s.step, s.index, s.queue, s.attempt, s.state_since, s.state_since
    from pgmq.%I m
    join pawl.steps s on s.task_id = pawl.as_uuid(m.message->>'task_id') and s.step = m.message->>'step'
      and s.index::text = coalesce(m.message->>'index', '0') and s.attempt::text = m.message->>'attempt'
      and s.state in ('enqueued', 'in_progress')
    on conflict do nothing $q$, 'q_' || queue);
end $$;
