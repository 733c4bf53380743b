-- does: decides what a request's key means: create the next epoch, attach to the task that holds the key, or refuse.
--   Only a failed, cancelled or timed-out holder opens the key; an expired one is taken over. Returns
--   {decision: create|attach|reject, epoch?, holder?, error?}.
-- called by: process_task_requests, keys in ascending order so that two batches cannot wait for each other in a circle.
-- locks: the identity row of a key that it takes, no other.
-- raises: nothing.
create or replace function pawl.decide_identity(request pawl.task_request, own_print bytea, on_duplicate text)
returns jsonb language plpgsql as $$
declare
  at timestamptz := pawl.now();
  held pawl.task_identities;
  task record;
begin
  loop
    -- A held key is only read: a storm of duplicates writes nothing and waits for nobody who ends a task. The insert would wait.
    select * into held from pawl.task_identities i where i.scope = request.scope and i.key = request.key;
    if not found then
      insert into pawl.task_identities (scope, key, task_id, status, fingerprint)
      values (request.scope, request.key, request.task_id, 'running', own_print)
      on conflict do nothing;
      if found then
        return jsonb_build_object('decision', 'create', 'epoch', 1);
      end if;
      continue;
    end if;
    exit when held.status not in ('failed', 'cancelled', 'timed_out') and (held.expires_at <= at) is not true;
    update pawl.task_identities i set task_id = request.task_id, status = 'running', fingerprint = own_print,
      epoch = i.epoch + 1, expires_at = null
    where i.scope = request.scope and i.key = request.key and i.task_id = held.task_id and i.epoch = held.epoch
      and (i.status in ('failed', 'cancelled', 'timed_out') or i.expires_at <= at)
    returning * into held;
    if found then
      return jsonb_build_object('decision', 'create', 'epoch', held.epoch);
    end if;
  end loop;
  select t.state, t.result, t.finalized_at, pawl.public_status(t.state) as status into task
  from pawl.tasks t where t.task_id = held.task_id;
  if held.fingerprint <> own_print then
    return jsonb_build_object('decision', 'reject', 'holder', held.task_id, 'error', jsonb_build_object(
      'error', 'TaskInputMismatch', 'message', format('Task with ID ''%s'' exists with another input', request.key),
      'existing_execution_id', held.task_id, 'status', coalesce(task.status, held.status)));
  end if;
  if on_duplicate is distinct from 'reject' or held.task_id = request.task_id then
    return jsonb_build_object('decision', 'attach', 'holder', held.task_id);
  end if;
  return jsonb_build_object('decision', 'reject', 'holder', held.task_id, 'error',
    case when held.status = 'completed' then jsonb_build_object('error', 'TaskAlreadyCompleted',
      'message', format('Task with ID ''%s'' already completed successfully', request.key),
      'existing_execution_id', held.task_id, 'completed_at', task.finalized_at, 'result', task.result)
    else jsonb_build_object('error', 'TaskAlreadyExists',
      'message', format('Task with ID ''%s'' is already pending/running', request.key),
      'existing_execution_id', held.task_id, 'status', coalesce(task.status, held.status)) end);
end $$;
