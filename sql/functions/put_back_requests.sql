-- does: puts task requests that this instance read back for a minute, with the read counts that it read them with, and takes
--   that read from their count: nobody worked them, so that waiting brings a request no nearer to the dead letters. What
--   somebody else read meanwhile stays as it is.
-- called by: the task-request actor, for versions newer than its own and for templates that are parked.
-- locks: those messages by id.
-- raises: nothing.
create or replace function pawl.put_back_requests(ids bigint[], read_counts int[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off set enable_hashjoin = off
set enable_mergejoin = off set enable_bitmapscan = off as $$
begin
  update pgmq.q_orchestration_task_requests q set vt = clock_timestamp() + interval '1 minute', read_ct = q.read_ct - 1
  where q.msg_id = any (ids) and ((q.msg_id, q.read_ct) in (select * from unnest(ids, read_counts))) is true;
end $$;
