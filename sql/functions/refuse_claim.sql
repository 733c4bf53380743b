-- does: ends an attempt whose entity claim was refused: a failed result that is not tried again. Its body never ran.
-- called by: begin_claimed_delivery.
-- locks: the message.
-- raises: nothing.
create or replace function pawl.refuse_claim(queue text, d pawl.delivery, because text) returns text language plpgsql as $$
begin
  execute format('select from pawl_queues.%I(array[$1], array[$2])', 'delete_' || queue) using d.msg_id, d.read_ct;
  perform pawl.send_failure(d.message, 'claim_failed', because, false);
  return 'failed';
end $$;
