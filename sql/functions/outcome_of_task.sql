-- does: the outcome of an operator's command on a task: what was done and what the task is now.
-- called by: operator functions, after settle_tasks.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.outcome_of_task(id uuid, outcome text) returns jsonb language sql stable as $$
  select jsonb_build_object('outcome', outcome, 'state', t.state, 'status', pawl.public_status(t.state))
  from pawl.tasks t where t.task_id = id
$$;
