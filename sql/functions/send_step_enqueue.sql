-- does: asks the step-enqueuer to look at tasks again.
-- called by: create_tasks, count_staged, settle_tasks, operator functions.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.send_step_enqueue(ids uuid[], reason text) returns void language plpgsql as $$
begin
  if ids is null or cardinality(ids) = 0 then
    return;
  end if;
  insert into pgmq.q_orchestration_step_enqueues (vt, message)
  select clock_timestamp(), jsonb_build_object('v', 1, 'task_id', i, 'reason', reason) from unnest(ids) i;
end $$;
