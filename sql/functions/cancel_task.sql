-- does: ends an open task as cancelled. Running handlers hear of it with their next heartbeat, their results are absorbed.
--   Returns {task_id, outcome: cancelled|unchanged, state, status}.
-- called by: operators, client.Cancel.
-- locks: the task, then its steps, then what end_tasks locks.
-- raises: PW020 unknown task, PW021 when it has ended otherwise, PW023 without actor or reason.
create or replace function pawl.cancel_task(task_id uuid, actor text, reason text) returns jsonb language plpgsql set jit = off as $$
declare
  task pawl.tasks;
  outcome text := 'cancelled';
begin
  perform pawl.begin_operation(actor, reason);
  task := pawl.lock_task(task_id);
  if task.state = 'cancelled' then
    outcome := 'unchanged';
  elsif pawl.is_final(task.state) then
    perform pawl.refuse_command(format('task %s has ended: %s', task_id, task.state), 'There is nothing left to cancel.');
  else
    perform pawl.end_tasks(array[task_id], 'cancelled', jsonb_build_object('type', 'cancelled', 'message', reason));
  end if;
  return pawl.end_operation('cancel_task', jsonb_build_object('task_id', task_id), pawl.outcome_of_task(task_id, outcome));
end $$;
