-- does: releases up to quantity held steps of one queue. Returns how many were released.
-- called by: release_held, under the queue row's lock.
-- locks: tasks (skip locked), then their steps.
-- raises: nothing of its own.
create or replace function pawl.release_queue(q pawl.queues, quantity int) returns int
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  refs pawl.step_ref[];
begin
  -- Locked before they count: a task that somebody holds, perhaps a transaction of the user's that stays open, does not
  -- take the only slot from those behind it.
  refs := array(select (h.task_id, h.step, h.index)::pawl.step_ref from pawl.held_steps h
    cross join lateral (select x.task_id from pawl.tasks x where x.task_id = h.task_id for no key update skip locked) t
    where h.queue = q.queue and h.released_at is null order by (h.attempt > 1), h.held_at limit quantity);
  if cardinality(refs) = 0 then
    delete from pawl.held_steps h where h.queue = q.queue and h.released_at is null
      and not exists (select from pawl.tasks t where t.task_id = h.task_id);
    return 0;
  end if;
  return pawl.release_refs(q, refs);
end $$;
