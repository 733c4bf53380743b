-- does: ends an attempt whose entity claim was refused: a failed result that is not tried again. Its body never ran.
-- called by: begin_claimed_delivery.
-- locks: the message.
-- raises: nothing.
create or replace function pawl.refuse_claim(queue text, d pawl.delivery, because text) returns text language plpgsql as $$
begin
  execute format('select from pawl_queues.%I(array[$1], array[$2])', 'delete_' || queue) using d.msg_id, d.read_ct;
  insert into pgmq.q_orchestration_step_results (vt, message)
  values (clock_timestamp(), jsonb_build_object('v', 1, 'task_id', d.message->'task_id', 'step', d.message->'step',
    'index', coalesce(d.message->'index', '0'), 'attempt', d.message->'attempt', 'status', 'failed',
    'error', jsonb_build_object('type', 'claim_failed', 'message', because, 'retryable', false)));
  return 'failed';
end $$;
