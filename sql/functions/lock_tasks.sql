-- does: locks tasks in the order of their ids, and waits for each a tenth of a second at most: longer than a transaction
--   of the engine needs, and too short to keep what stands behind it waiting.
-- called by: apply_step_results, process_step_enqueues, in a sub-transaction, which goes on without who is held.
-- locks: tasks by id.
-- raises: 55P03 when one stays locked.
create or replace function pawl.lock_tasks(ids uuid[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off set lock_timeout = '100ms' as $$
begin
  perform from pawl.tasks t where t.task_id = any (ids) order by t.task_id for no key update;
end $$;
