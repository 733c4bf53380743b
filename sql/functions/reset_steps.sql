-- does: makes steps of a locked task begin again: pending, without result, error and failures. One that was complete or
--   resolved starts a new round, so that its token changes; a retry keeps the token. What runs is cancelled first, its
--   late result is then of an older attempt. settle_tasks counts their needs anew and starts what is ready.
-- called by: retry_task, retry_step, revive_steps.
-- locks: nothing more: the steps are locked.
-- raises: nothing of its own.
create or replace function pawl.reset_steps(refs pawl.step_ref[]) returns int language plpgsql as $$
declare
  at timestamptz := pawl.now();
  moved int;
  waiters uuid[];
begin
  update pawl.steps s set state = 'cancelled', revision = s.revision + 1, worker = null, due_at = null, state_since = at
  from unnest(refs) r
  where s.task_id = r.task_id and s.step = r.step and s.index = r.index and s.state = 'in_progress';
  delete from pawl.held_steps h using unnest(refs) r
  where h.task_id = r.task_id and h.step = r.step and h.index = r.index;
  delete from pawl.step_key_waiters w using unnest(refs) r -- by hand, they wait anew
  where w.task_id = r.task_id and w.step = r.step and w.index = r.index;
  with given_up as ( -- a step that is to wait for others again may be what these wait for
    delete from pawl.step_identities i using unnest(refs) r
    where i.task_id = r.task_id and i.step = r.step and i.index = r.index returning i.scope, i.key)
  select array(select distinct w.task_id from given_up g
    join pawl.step_key_waiters w on w.scope = g.scope and w.key = g.key) into waiters;
  perform pawl.send_step_enqueue(waiters, 'key');
  update pawl.steps s set state = 'pending', revision = s.revision + 1, due_at = null, state_since = at, result = null,
    error = null, failures = 0, round = s.round + (s.state in ('complete', 'resolved_manually'))::int
  from unnest(refs) r
  where s.task_id = r.task_id and s.step = r.step and s.index = r.index and s.state <> 'pending';
  get diagnostics moved = row_count;
  return moved;
end $$;
