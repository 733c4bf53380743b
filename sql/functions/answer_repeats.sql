-- does: answers the requests whose request_id was there before: the same request again is attached to its task, another
--   body under the same id is refused. A request that names no version is the same though a later version is there by now.
--   Returns the outcomes with theirs in place.
-- called by: process_task_requests.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.answer_repeats(requests pawl.task_request[], made uuid[], outcomes jsonb) returns jsonb
language plpgsql as $$
declare
  r pawl.task_request;
  mismatch boolean;
  seen uuid[] := '{}';
begin
  foreach r in array requests loop
    if r.task_id = any (made) and not r.task_id = any (seen) then
      seen := seen || r.task_id;
      continue;
    end if;
    outcomes := (select coalesce(jsonb_agg(o), '[]') from jsonb_array_elements(outcomes) o
      where (o->>'msg_id')::bigint <> r.msg_id);
    select t.input is distinct from r.message->'input' or t.key is distinct from r.key or (t.template_id <> r.template_id
        and (w.adhoc or r.message->>'template' like '%@%' or (t.namespace, t.template) <> (w.namespace, w.name))) into mismatch
    from pawl.tasks t, pawl.templates w where t.task_id = r.task_id and w.template_id = r.template_id;
    outcomes := outcomes || pawl.answer_duplicate(r, r.task_id, case when mismatch then jsonb_build_object(
      'error', 'TaskInputMismatch', 'message', format('Task with ID ''%s'' exists with another request', r.task_id),
      'existing_execution_id', r.task_id) end);
  end loop;
  return outcomes;
end $$;
