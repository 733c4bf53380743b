-- does: resets what the failure of one step had cancelled: dependents that could never run, and with on_failure fail_fast
--   the other steps, unless another step has failed too.
-- called by: retry_step, resolve_step, complete_step, when the step had failed.
-- locks: nothing more: the steps are locked.
-- raises: nothing of its own.
create or replace function pawl.revive_steps(id uuid, name text) returns int language sql as $$
  select pawl.reset_steps(array(
    select (s.task_id, s.step, s.index)::pawl.step_ref from pawl.steps s
    where s.task_id = id and s.state = 'cancelled' and s.step <> name
      and case s.error->>'type'
        when 'dependency_failed' then exists (select from unnest(pawl.descendant_steps(id, name)) d where d.step = s.step)
        when 'fail_fast' then not exists (select from pawl.steps f where f.task_id = id and f.state = 'error' and f.step <> name)
        else false end))
$$;
