-- does: leaves the trace of a duplicate request (absorbed), answers its sender, and returns its outcome.
-- called by: process_task_requests, answer_repeats.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.answer_duplicate(request pawl.task_request, holder uuid, error jsonb) returns jsonb
language plpgsql as $$
declare
  outcome text := case when error is null then 'attached' else 'rejected' end;
  answer jsonb;
begin
  insert into pawl.absorbed (queue, msg_id, task_id, reason, message)
  values ('orchestration_task_requests', request.msg_id, holder,
    case when error is null then 'duplicate request' else error->>'error' end, request.message - 'input');
  select jsonb_build_object('task_id', holder, 'outcome', outcome, 'status', coalesce(pawl.public_status(t.state), 'result_expired'))
    || case when answer_duplicate.error is not null then jsonb_build_object('error', answer_duplicate.error)
      when t.state in ('complete', 'resolved_manually') then jsonb_build_object('result', t.result) else '{}' end
  into answer from (values (holder)) h(id) left join pawl.tasks t on t.task_id = h.id;
  perform pawl.send_reply(request.message->>'reply_to', answer || jsonb_build_object('request_id',
    coalesce(request.message->>'request_id', request.task_id::text)));
  return answer || jsonb_build_object('msg_id', request.msg_id);
end $$;
