-- does: raises PW021 when a step that an operator had begun again was cancelled at once: others have failed.
-- called by: retry_step, retry_task, after settle_tasks.
-- locks: nothing more: the step is locked.
-- raises: PW021.
create or replace function pawl.refuse_unreachable(id uuid, name text, i int) returns void language sql as $$
  select pawl.refuse_command(format('step %s of task %s cannot run: %s', name, id, s.error->>'message'),
    format('Retry first what failed, or all of it: pawl task retry %s', id))
  from pawl.steps s where s.task_id = id and s.step = name and s.index = i and s.state = 'cancelled'
$$;
