-- does: makes a dead letter of an invalid request (its reason: the error's name, a colon, the message), answers its
--   sender if it can be told, returns the outcome.
-- called by: process_task_requests. The request's message is {invalid: {error, message}, message: as sent}.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.refuse_request(request pawl.task_request) returns jsonb language plpgsql as $$
declare
  sent jsonb := request.message->'message';
  invalid jsonb := request.message->'invalid';
begin
  insert into pawl.dead_letters (queue, msg_id, read_count, message, headers, reason)
  values ('orchestration_task_requests', request.msg_id, request.read_count, sent, request.headers,
    concat_ws(': ', invalid->>'error', invalid->>'message'));
  if jsonb_typeof(sent) = 'object' and jsonb_typeof(sent->'reply_to') = 'string' then
    perform pawl.send_reply(sent->>'reply_to', jsonb_build_object('request_id',
      case when jsonb_typeof(sent->'request_id') = 'string' then sent->'request_id' end, 'outcome', 'invalid',
      'error', invalid));
  end if;
  return jsonb_build_object('msg_id', request.msg_id, 'outcome', 'invalid', 'error', invalid);
end $$;
