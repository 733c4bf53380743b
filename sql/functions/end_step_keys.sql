-- does: what results mean for the keys of their steps. Returns the waiters' tasks that are free, now locked; the caller
--   settles them, and settle_tasks completes or starts what waited.
-- called by: close_attempts, after the steps have moved.
-- locks: as free_step_keys.
-- raises: nothing.
create or replace function pawl.end_step_keys(results pawl.step_result[]) returns uuid[]
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
begin
  if not exists (select from pawl.step_identities) then
    return '{}';
  end if;
  return pawl.free_step_keys(array(select distinct (r.task_id, r.step, r.index)::pawl.step_ref from unnest(results) r));
end $$;
