-- does: says why a gate holds a step back.
-- called by: explain_step.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.explain_gate(queue text) returns text language sql stable as $$
  select case
    when pawl.queue_table(q.queue) is null then pawl.explain_queue(q.queue)
    when q.paused then format('queue %s is paused', q.queue)
    when q.max_concurrency is not null and u.used >= q.max_concurrency
      then format('queue %s runs %s of %s attempts at once', q.queue, u.used, q.max_concurrency)
    when q.rate_limit is not null then format('queue %s releases %s per %s', q.queue, q.rate_limit,
      case q.rate_period when interval '1 second' then 'second' when interval '1 minute' then 'minute' else 'hour' end)
    when q.gated then format('queue %s releases it with its next look', q.queue)
    else format('queue %s has no limit any more and releases it with its next look', q.queue) end
  from pawl.queues q
  cross join lateral (select count(*) as used from pawl.held_steps h
    join pawl.steps s on s.task_id = h.task_id and s.step = h.step and s.index = h.index and s.attempt = h.attempt
      and s.state in ('enqueued', 'in_progress')
    where h.queue = q.queue and h.released_at is not null) u
  where q.queue = $1
$$;
