-- does: begins locked tasks whose start time has come; the deadline of the task counts from here. What is over the bound of
--   steps now, or was when it was created and has none yet, is built first.
-- called by: fire_due.
-- locks: nothing more: the tasks are locked.
-- raises: nothing of its own.
create or replace function pawl.start_tasks(ids uuid[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  bound int := (select s.max_steps_per_transaction from pawl.engine_settings s);
begin
  update pawl.tasks t set state = case when p.step_count > bound
      or not exists (select from pawl.steps s where s.task_id = t.task_id) then 'initializing' else 'enqueuing_steps' end::pawl.task_state,
    revision = t.revision + 1, state_since = at, started_at = at, due_at = at + p.timeout
  from pawl.templates p where p.template_id = t.template_id and t.task_id = any (ids) and t.state = 'pending';
  perform pawl.send_step_enqueue(array(select t.task_id from pawl.tasks t
    where t.task_id = any (ids) and t.state = 'initializing'), 'build');
  perform pawl.settle_tasks(ids);
end $$;
