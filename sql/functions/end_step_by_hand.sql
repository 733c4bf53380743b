-- does: what resolve_step and complete_step share: ends one step by an operator's word and lets the task go on. A task
--   that ended because of the step (error) is opened again; what the step's failure had cancelled runs after all. The step
--   has its key, unless another one holds it: what a person calls done is not done again.
-- called by: resolve_step, complete_step, within their operation.
-- locks: the task, then its steps, then its key's identity row; those of step keys and the tasks that wait for one, skip locked.
-- raises: PW020, PW021, PW022.
create or replace function pawl.end_step_by_hand(ref pawl.step_ref, next pawl.step_state, value jsonb) returns jsonb
language plpgsql as $$
declare
  task pawl.tasks := pawl.lock_task(ref.task_id);
  one pawl.steps := pawl.locked_step(ref.task_id, ref.step, ref.index);
begin
  if one.state = next and one.result is not distinct from value then
    return pawl.outcome_of_task(ref.task_id, 'unchanged');
  elsif one.state in ('complete', 'skipped', 'resolved_manually') then
    perform pawl.refuse_command(format('step %s of task %s is %s', ref.step, ref.task_id, one.state), 'It has its end already.');
  elsif task.state in ('cancelled', 'timed_out', 'pending', 'initializing') then
    perform pawl.refuse_command(format('task %s is %s', ref.task_id, task.state),
      'Retry an ended task first, and end the step then; a task that has not begun has no steps to end.');
  end if;
  perform pawl.reopen_task(task);
  perform pawl.revive_steps(ref.task_id, ref.step);
  delete from pawl.held_steps h where h.task_id = ref.task_id and h.step = ref.step and h.index = ref.index;
  perform pawl.take_step_key(ref, k.scope, k.key) from pawl.step_keys(array[ref]) k where k.key is not null;
  update pawl.steps s set state = next, worker = null, due_at = null, state_since = pawl.now(), result = value, error = null,
    revision = s.revision + case when s.state = 'enqueued' and next = 'complete' then 2 else 1 end
  where s.task_id = ref.task_id and s.step = ref.step and s.index = ref.index;
  perform pawl.settle_tasks(ref.task_id || case when exists (select from pawl.step_identities)
    then pawl.free_step_keys(array[ref]) else '{}' end);
  return pawl.outcome_of_task(ref.task_id, case next when 'complete' then 'completed' else 'resolved' end);
end $$;
