-- does: replaces a message that could not begin by a new one for later, so that waiting is not counted as a crash; the
--   deliveries that did begin still count. Nobody
--   is told when it is due: what wakes the workers is its insert, and their last look of the series that follows comes 855 ms
--   after it. What waits for less is found by that one, the rest by the idle poll.
-- called by: begin_claimed_delivery, begin_special_deliveries.
-- locks: the message.
-- raises: nothing.
create or replace function pawl.put_off_delivery(queue text, d pawl.delivery, wait interval) returns void
language plpgsql as $$
begin
  execute format('with gone as (select g.message, g.headers from unnest(pawl_queues.%I(array[$1], array[$2])) g)
      insert into pgmq.%I (vt, read_ct, message, headers) select clock_timestamp() + $3, $2 - 1, g.message, g.headers from gone g',
    'delete_' || queue, 'q_' || queue) using d.msg_id, d.read_ct, wait;
end $$;
