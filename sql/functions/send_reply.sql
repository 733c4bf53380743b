-- does: sends a reply to the queue a request named; one that is not there or refuses it leaves an absorbed row instead, for the
--   end of a task does not depend on who hears of it.
-- called by: answer_duplicate, refuse_request, close_tasks.
-- locks: nothing.
-- raises: infrastructure errors.
create or replace function pawl.send_reply(reply_queue text, body jsonb) returns void language plpgsql as $$
declare
  problem text;
begin
  if reply_queue is null then
    return;
  end if;
  if starts_with(reply_queue, 'orchestration_') or not exists (select from pgmq.meta m where m.queue_name = reply_queue) then
    problem := 'reply queue missing';
  else
    begin
      perform pgmq.send(reply_queue, jsonb_build_object('v', 1) || body);
    exception when others then
      if pawl.concerns_all(sqlstate) then
        raise;
      end if;
      problem := left(format('reply refused: %s (%s)', sqlerrm, sqlstate), 500);
    end;
  end if;
  if problem is not null then
    insert into pawl.absorbed (queue, task_id, reason, message)
    values (left(reply_queue, 200), case when body ? 'task_id' then (body->>'task_id')::uuid end, problem, body - 'result');
  end if;
end $$;
