-- does: asks the finalizer to look at tasks.
-- called by: count_staged, settle_tasks in staged mode.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.send_task_finalization(ids uuid[], reason text) returns void language plpgsql as $$
begin
  if ids is null or cardinality(ids) = 0 then
    return;
  end if;
  insert into pgmq.q_orchestration_task_finalizations (vt, message)
  select clock_timestamp(), jsonb_build_object('v', 1, 'task_id', i, 'reason', reason) from unnest(ids) i;
end $$;
