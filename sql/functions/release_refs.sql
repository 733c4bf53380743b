-- does: releases held steps of one queue whose tasks are locked: begins their attempts, makes their rows concurrency slots or
--   deletes them, counts. Rows whose step or task has moved on are deleted. Returns how many were released.
-- called by: release_queue, release_alone, under the queue row's lock.
-- locks: steps of the locked tasks.
-- raises: nothing of its own.
create or replace function pawl.release_refs(q pawl.queues, refs pawl.step_ref[]) returns int
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  good pawl.step_ref[];
begin
  good := array(select (s.task_id, s.step, s.index)::pawl.step_ref from unnest(refs) r
    join pawl.steps s on s.task_id = r.task_id and s.step = r.step and s.index = r.index and s.state = 'pending' and s.needs_open = 0
    join pawl.tasks t on t.task_id = r.task_id and not pawl.is_final(t.state));
  delete from pawl.held_steps h using unnest(refs) r
  where h.task_id = r.task_id and h.step = r.step and h.index = r.index and h.released_at is null
    and (q.max_concurrency is null or not exists (select from unnest(good) g
      where g.task_id = r.task_id and g.step = r.step and g.index = r.index));
  if cardinality(good) = 0 then
    return 0;
  end if;
  perform pawl.start_attempts(good, true);
  update pawl.held_steps h set released_at = at, attempt = s.attempt
  from unnest(good) g join pawl.steps s on s.task_id = g.task_id and s.step = g.step and s.index = g.index
  where h.task_id = g.task_id and h.step = g.step and h.index = g.index;
  update pawl.queues x set unclaimed_count = x.unclaimed_count + cardinality(good) where x.queue = q.queue and x.rate_limit is not null;
  update pawl.tasks t set active_count = t.active_count + n.begun, held_count = greatest(0, t.held_count - n.begun),
    state = 'steps_in_process', revision = t.revision + (t.state <> 'steps_in_process')::int,
    state_since = case when t.state <> 'steps_in_process' then at else t.state_since end
  from (select g.task_id, count(*)::int as begun from unnest(good) g group by g.task_id) n
  where t.task_id = n.task_id;
  return cardinality(good);
end $$;
