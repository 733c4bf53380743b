-- does: locks one task and then its steps, in the engine's order, and gives the task as it is under the lock.
-- called by: operator functions.
-- locks: the task, then all its steps.
-- raises: PW020 for an unknown task, 55P03 when it stays locked for the lock_timeout.
create or replace function pawl.lock_task(id uuid) returns pawl.tasks language plpgsql as $$
declare
  task pawl.tasks;
begin
  select * into task from pawl.tasks t where t.task_id = id for no key update;
  if not found then
    raise exception 'there is no task %', coalesce(id::text, 'null') using errcode = 'PW020',
      hint = 'Its retention may be over; pawl task list shows the tasks that are kept.';
  end if;
  perform from pawl.steps s where s.task_id = id order by s.step, s.index for no key update;
  return task;
end $$;
