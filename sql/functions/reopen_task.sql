-- does: opens a locked task again that ended as error, cancelled or timed_out, and takes its key back. Its timeout begins
--   anew. A task whose steps were not all built goes on building. An open task is left as it is.
-- called by: retry_task, retry_step, resolve_step, complete_step: before settle_tasks.
-- locks: the identity row of the task's key.
-- raises: PW021 for a task that is complete or resolved, PW022 when a later task has the key.
create or replace function pawl.reopen_task(task pawl.tasks) returns void language plpgsql as $$
declare
  at timestamptz := pawl.now();
  holder uuid;
  p pawl.templates;
begin
  if not pawl.is_final(task.state) then
    return;
  elsif task.state in ('complete', 'resolved_manually') then
    perform pawl.refuse_command(format('task %s is %s and stays so', task.task_id, task.state), 'Submit a new task instead.');
  end if;
  if task.key is not null then
    -- One statement: a sweep may delete an identity that is only looked at.
    insert into pawl.task_identities as i (scope, key, task_id, status, fingerprint, epoch)
    values (task.scope, task.key, task.task_id, 'running', pawl.fingerprint(task.input), coalesce(task.epoch, 1))
    on conflict (scope, key) do update set status = case when i.task_id = task.task_id then 'running' else i.status end,
      expires_at = case when i.task_id <> task.task_id then i.expires_at end
    returning i.task_id into holder;
    if holder <> task.task_id then
      raise exception 'task % may not be opened again: task % has its key by now', task.task_id, holder using errcode = 'PW022',
        hint = 'Look at the later task; this one is history.';
    end if;
  end if;
  select * into p from pawl.templates x where x.template_id = task.template_id;
  if (select count(*) from pawl.steps s where s.task_id = task.task_id) < p.step_count then
    update pawl.tasks t set state = 'pending', revision = t.revision + 1, state_since = at, started_at = coalesce(t.started_at, at),
      finalized_at = null, due_at = at + p.timeout, result = null, error = null where t.task_id = task.task_id;
    update pawl.tasks t set state = 'initializing', revision = t.revision + 1 where t.task_id = task.task_id;
    perform pawl.send_step_enqueue(array[task.task_id], 'build');
  else
    update pawl.tasks t set state = 'enqueuing_steps', revision = t.revision + 1, state_since = at,
      started_at = coalesce(t.started_at, at), finalized_at = null, due_at = at + p.timeout, result = null, error = null
    where t.task_id = task.task_id;
  end if;
end $$;
