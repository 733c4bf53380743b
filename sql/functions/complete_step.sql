-- does: a person completes a step with a result of their own, as if its handler had returned it. Returns
--   {task_id, step, outcome: completed|unchanged, state, status}.
-- called by: operators.
-- locks: the task, then its steps, then its key's identity row.
-- raises: PW020 unknown task or step, PW021 when it has ended or runs under an entity claim, PW022, PW023.
create or replace function pawl.complete_step(task_id uuid, step text, index int, result jsonb, actor text, reason text)
returns jsonb language plpgsql set jit = off as $$
begin
  perform pawl.begin_operation(actor, reason);
  return pawl.end_operation('complete_step', jsonb_build_object('task_id', task_id, 'step', step),
    pawl.end_step_by_hand((task_id, step, index)::pawl.step_ref, 'complete', result));
end $$;
