-- does: sends a reply to the queue a request named; a queue that is not there leaves an absorbed row instead.
-- called by: answer_duplicate, refuse_request, close_tasks.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.send_reply(reply_queue text, body jsonb) returns void language plpgsql as $$
begin
  if reply_queue is null then
    return;
  end if;
  if reply_queue like 'orchestration\_%' or not exists (select from pgmq.meta m where m.queue_name = reply_queue) then
    insert into pawl.absorbed (queue, task_id, reason, message)
    values (left(reply_queue, 200), case when body ? 'task_id' then (body->>'task_id')::uuid end, 'reply queue missing', body - 'result');
    return;
  end if;
  perform pgmq.send(reply_queue, jsonb_build_object('v', 1) || body);
end $$;
