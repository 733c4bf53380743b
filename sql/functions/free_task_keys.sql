-- does: frees the step keys of all ended steps of tasks. Returns the waiters' tasks that are free, now locked.
-- called by: process_step_enqueues: a key was at work elsewhere when its holder ended.
-- locks: as free_step_keys.
-- raises: nothing.
create or replace function pawl.free_task_keys(ids uuid[]) returns uuid[]
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
begin
  if not exists (select from pawl.step_identities) then
    return '{}';
  end if;
  return pawl.free_step_keys(array(select (s.task_id, s.step, s.index)::pawl.step_ref from pawl.steps s
    where s.task_id = any (ids) and s.state in ('complete', 'resolved_manually', 'error', 'cancelled', 'skipped')));
end $$;
