-- does: how long a message that was just read stays invisible.
-- called by: begin_claimed_delivery.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.lease_left(queue text, id bigint) returns interval language plpgsql as $$
declare
  ends_at timestamptz;
begin
  execute format('select q.vt from pgmq.%I q where q.msg_id = $1', 'q_' || queue) into ends_at using id;
  return coalesce(ends_at - clock_timestamp(), interval '0');
end $$;
