-- does: ends a step message that raised alone: an infrastructure error leaves it for the next delivery, a claim may be
--   tried max_deliveries times, anything else deterministic is a dead letter, which ends the attempt it belonged to.
-- called by: claim_steps.
-- locks: the message.
-- raises: nothing of its own.
create or replace function pawl.refuse_delivery(queue text, one pawl.delivery, code text, problem text) returns void
language plpgsql as $$
begin
  if pawl.is_infrastructure_error(code) then
    return;
  end if;
  execute format('select from pawl_queues.%I(array[$1], array[$2])', 'delete_' || queue) using one.msg_id, one.read_ct;
  insert into pawl.dead_letters (queue, msg_id, read_count, message, headers, reason, task_id, step)
  values (queue, one.msg_id, one.read_ct, one.message, one.headers, format('%s (%s)', problem, code),
    pawl.as_uuid(one.message->>'task_id'), left(one.message->>'step', 100));
  if pawl.as_uuid(one.message->>'task_id') is not null and jsonb_typeof(one.message->'step') = 'string'
    and (one.message->>'attempt') ~ '^[0-9]{1,9}$' then
    perform pawl.send_failure(one.message, 'dead_letter', problem, true);
  end if;
end $$;
