-- does: runs one failed or cancelled step again, one that a crash under an entity claim left waiting, or one in back-off at
--   once, with the dependents that its failure had cancelled. A final task is opened again. Returns {task_id, step,
--   outcome: retried, state, status}. A second call finds the step under way and is refused.
-- called by: operators.
-- locks: the task, then its steps, then its key's identity row.
-- raises: PW020 unknown task or step, PW021 when the step has not failed, when another's failure cancels it
--   again, or when the task is complete, PW022, PW023.
create or replace function pawl.retry_step(task_id uuid, step text, index int, actor text, reason text) returns jsonb
language plpgsql set jit = off as $$
declare
  task pawl.tasks;
  one pawl.steps;
begin
  perform pawl.begin_operation(actor, reason);
  task := pawl.lock_task(task_id);
  one := pawl.locked_step(task_id, step, index);
  if one.state not in ('error', 'cancelled', 'waiting_for_retry') and (one.state <> 'waiting' or one.error is null) then
    perform pawl.refuse_command(format('step %s of task %s is %s', step, task_id, one.state),
      'Only a failed step is retried.' || case when task.state in ('complete', 'resolved_manually')
          then format(' Task %s is %s: submit a new one.', task_id, task.state)
        when one.state in ('complete', 'resolved_manually', 'skipped')
          then format(' To repeat it, with what follows it: pawl task retry %s --from %s', task_id, step)
        else '' end);
  end if;
  perform pawl.reopen_task(task);
  perform pawl.revive_steps(task_id, step);
  perform pawl.reset_steps(array[(one.task_id, one.step, one.index)::pawl.step_ref]);
  perform pawl.settle_tasks(array[task_id]);
  perform pawl.refuse_unreachable(task_id, step, index);
  return pawl.end_operation('retry_step', jsonb_build_object('task_id', task_id, 'step', step),
    pawl.outcome_of_task(task_id, 'retried'));
end $$;
