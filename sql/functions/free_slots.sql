-- does: frees the concurrency slots of attempts that have ended, and asks the gate to look when steps wait behind it.
-- called by: close_attempts.
-- locks: rows of held_steps whose tasks are locked.
-- raises: nothing.
create or replace function pawl.free_slots(results pawl.step_result[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
begin
  with freed as (
    delete from pawl.held_steps h using unnest(results) r, pawl.steps s
    where h.task_id = r.task_id and h.step = r.step and h.index = r.index and h.released_at is not null
      and s.task_id = r.task_id and s.step = r.step and s.index = r.index
      and (s.attempt <> h.attempt or s.state not in ('enqueued', 'in_progress'))
    returning h.queue)
  insert into pgmq.q_orchestration_step_enqueues (vt, message)
  select clock_timestamp(), jsonb_build_object('v', 1, 'queue', f.queue, 'reason', 'slot is free')
  from (select distinct queue from freed) f
  where exists (select from pawl.held_steps w where w.queue = f.queue and w.released_at is null);
end $$;
