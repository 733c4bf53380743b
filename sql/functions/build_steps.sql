-- does: builds the next steps of a task whose template is over the bound of one transaction; asks for the next piece, or
--   lets the task begin when all are there.
-- called by: settle_asked_tasks.
-- locks: nothing more: the task is locked.
-- raises: nothing.
create or replace function pawl.build_steps(one uuid) returns void language plpgsql as $$
declare
  at timestamptz := pawl.now();
  bound int := (select s.max_steps_per_transaction from pawl.engine_settings s);
  built int := (select count(*) from pawl.steps s where s.task_id = one);
  wanted int;
begin
  insert into pawl.steps (task_id, step, template_id, handler, queue, state, needs_open, state_since)
  select one, s.step, s.template_id, s.handler, s.queue, 'pending', s.needs_count, at
  from pawl.tasks t join pawl.template_steps s on s.template_id = t.template_id
  where t.task_id = one and s.position >= built order by s.position limit bound;
  select p.step_count into wanted from pawl.tasks t join pawl.templates p on p.template_id = t.template_id where t.task_id = one;
  if built + bound < wanted then
    perform pawl.send_step_enqueue(array[one], 'build');
  else
    update pawl.tasks t set state = 'enqueuing_steps', revision = t.revision + 1, state_since = at where t.task_id = one;
  end if;
end $$;
