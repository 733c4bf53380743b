-- does: puts messages that nobody worked back for a while, and takes the read from their count: it was no delivery.
-- called by: apply_step_results, process_step_enqueues, put_back_newer, which hold them.
-- locks: nothing new.
-- raises: nothing.
create or replace function pawl.put_back(queue text, ids bigint[], wait interval) returns void language plpgsql as $$
begin
  execute format('update pgmq.%I q set vt = clock_timestamp() + $2, read_ct = greatest(q.read_ct - 1, 0) where q.msg_id = any ($1)',
    'q_' || queue) using ids, wait;
end $$;
