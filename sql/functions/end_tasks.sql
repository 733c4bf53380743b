-- does: ends locked, open tasks before their steps are done: cancelled, timed_out, error or resolved_manually, with a
--   cause. Cancels the open steps; one that holds an entity claim runs on, its claim only marked as revoked: its own
--   report or its module's janitor ends it. One that has reported under a claim, with the result still in its queue, is
--   cancelled: the row has moved as the body said, the result is absorbed. Messages stay and are absorbed by who reads them. Returns the tasks it ended.
--   A task that is resolved has its result set before, by its caller.
-- called by: fire_due, cancel_task, resolve_task: under the tasks' locks.
-- locks: steps of the locked tasks, then identity rows (close_tasks), then entity claims of these steps, skip locked.
-- raises: nothing of its own; PW001 for a task that may not end like this.
create or replace function pawl.end_tasks(ids uuid[], state pawl.task_state, error jsonb) returns uuid[]
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  at timestamptz := pawl.now();
  next pawl.task_state := state;
  cause jsonb := error;
begin
  ids := array(select t.task_id from pawl.tasks t where t.task_id = any (ids) and not pawl.is_final(t.state));
  -- A claim that is just committing brings its entity claim: seen only by a statement after the lock.
  perform from pawl.steps s where s.task_id = any (ids) order by s.task_id, s.step, s.index for no key update;
  update pawl.steps s set state = 'cancelled', revision = s.revision + 1, worker = null, due_at = null, state_since = at,
    error = jsonb_build_object('type', 'task_' || next, 'message', 'the task ended before the step')
  where s.task_id = any (ids) and s.state in ('pending', 'enqueued', 'in_progress', 'waiting_for_retry', 'waiting')
    and not (s.state = 'in_progress' and exists (select from pawl.entity_claims c
      where c.task_id = s.task_id and c.step = s.step and c.index = s.index));
  delete from pawl.held_steps h where h.task_id = any (ids) and not exists (select from pawl.steps s
    where s.task_id = h.task_id and s.step = h.step and s.index = h.index and s.state = 'in_progress');

  update pawl.tasks t set state = next,
    revision = t.revision + case when next = 'error' and t.state <> 'evaluating_results' then 2 else 1 end,
    state_since = at, finalized_at = at, due_at = null, open_count = 0, active_count = 0, held_count = 0, retrying_count = 0,
    waiting_count = 0, error = cause
  where t.task_id = any (ids);
  perform pawl.close_tasks(ids);
  -- Who holds a claim ends it, perhaps in a transaction of the user's that stays open: a cancel does not wait for that.
  -- If it is rolled back, the next heartbeat sees that the task has ended (extend_leases).
  update pawl.entity_claims c set revoked_at = at where (c.entity, c.entity_id) in (select x.entity, x.entity_id
    from pawl.entity_claims x where x.task_id = any (ids) and x.revoked_at is null for update skip locked);
  if exists (select from pawl.step_identities) then
    perform pawl.send_step_enqueue(pawl.free_step_keys(array(select (s.task_id, s.step, s.index)::pawl.step_ref
      from pawl.steps s where s.task_id = any (ids) and s.state = 'cancelled')), 'key');
  end if;
  perform pawl.announce_finished();
  return ids;
end $$;
