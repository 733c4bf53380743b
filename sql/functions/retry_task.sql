-- does: runs a task's failed and cancelled steps again, keeping what is complete; or, with from_step, that step and all
--   that follow it, whatever they were, keeping the results of the others. A final task is opened again.
--   Returns {task_id, step, outcome: retried, steps, state, status}. A second call finds nothing to retry and is refused.
-- called by: operators.
-- locks: the task, then its steps, then its key's identity row.
-- raises: PW020 unknown task or step, PW021 when there is nothing to retry, when another's failure cancels from_step again, when the task
--   is complete, or when a step runs under an entity claim, PW022 when a later task has the key, PW023 without actor or reason.
create or replace function pawl.retry_task(task_id uuid, from_step text, actor text, reason text) returns jsonb
language plpgsql set jit = off as $$
#variable_conflict use_variable
declare
  task pawl.tasks;
  first pawl.steps;
  refs pawl.step_ref[];
  moved int;
begin
  perform pawl.begin_operation(actor, reason);
  task := pawl.lock_task(task_id);
  if from_step is not null then
    first := pawl.locked_step(task_id, from_step, 0);
    refs := pawl.descendant_steps(task_id, from_step);
    if first.state not in ('complete', 'skipped', 'error', 'cancelled', 'resolved_manually') then
      perform pawl.refuse_command(format('step %s is %s', from_step, first.state), 'It has not ended yet; what follows it will run anyway.');
    end if;
  else
    refs := array(select (s.task_id, s.step, s.index)::pawl.step_ref from pawl.steps s
      where s.task_id = task.task_id and s.state in ('error', 'cancelled') order by s.step, s.index);
    if cardinality(refs) = 0 and not pawl.is_final(task.state) then
      perform pawl.refuse_command(format('task %s is %s and has no failed step', task_id, task.state),
        'To repeat steps that are complete, name the step to begin from.');
    end if;
  end if;
  perform pawl.refuse_claimed(array(select (s.task_id, s.step, s.index)::pawl.step_ref from pawl.steps s
    where s.task_id = task.task_id and s.state = 'in_progress' and (pawl.is_final(task.state)
      or exists (select from unnest(refs) r where r.step = s.step and r.index = s.index))));
  perform pawl.reopen_task(task);
  moved := pawl.reset_steps(refs);
  perform pawl.settle_tasks(array[task_id]);
  perform pawl.refuse_unreachable(task_id, from_step, 0);
  return pawl.end_operation('retry_task', jsonb_strip_nulls(jsonb_build_object('task_id', task_id, 'step', from_step)),
    pawl.outcome_of_task(task_id, 'retried') || jsonb_build_object('steps', moved));
end $$;
