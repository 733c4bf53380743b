-- does: a person declares a task done, with a result if there is one: from any state but complete. What is open is
--   cancelled. Returns {task_id, outcome: resolved|unchanged, state, status}.
-- called by: operators.
-- locks: the task, then its steps, then what end_tasks locks.
-- raises: PW020 unknown task, PW021 for a complete task, PW023 without actor or reason.
create or replace function pawl.resolve_task(task_id uuid, result jsonb, actor text, reason text) returns jsonb
language plpgsql set jit = off as $$
#variable_conflict use_variable
declare
  at timestamptz := pawl.now();
  task pawl.tasks;
  outcome text := 'resolved';
begin
  perform pawl.begin_operation(actor, reason);
  task := pawl.lock_task(task_id);
  if task.state = 'resolved_manually' then
    outcome := 'unchanged';
  elsif task.state = 'complete' then
    perform pawl.refuse_command(format('task %s is complete', task_id), 'It needs no resolution.');
  elsif pawl.is_final(task.state) then
    update pawl.tasks t set state = 'resolved_manually', revision = t.revision + 2, state_since = at, finalized_at = at,
      result = resolve_task.result, error = null where t.task_id = task.task_id;
    perform pawl.close_tasks(array[task_id]);
    perform pawl.announce_finished();
  else
    update pawl.tasks t set result = resolve_task.result where t.task_id = task.task_id;
    perform pawl.end_tasks(array[task_id], 'resolved_manually', null);
  end if;
  return pawl.end_operation('resolve_task', jsonb_build_object('task_id', task_id), pawl.outcome_of_task(task_id, outcome));
end $$;
