-- does: tells which of these tasks somebody holds: their rows, or those of steps under way, as a report does in a transaction that
--   stays open (hand_in_step_results). The others are locked.
-- called by: apply_step_results, process_step_enqueues, after a lock that they did not get.
-- locks: tasks by id, then their steps, all skip locked.
-- raises: nothing.
create or replace function pawl.held_tasks(ids uuid[]) returns uuid[]
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  free uuid[] := array(select t.task_id from pawl.tasks t where t.task_id = any (ids) order by t.task_id for no key update skip locked);
  steps uuid[] := array(select s.task_id from pawl.steps s where s.task_id = any (free) and s.state in ('enqueued', 'in_progress')
    order by s.task_id, s.step, s.index for no key update skip locked);
begin
  return array(select t.task_id from pawl.tasks t where t.task_id = any (ids) and (not t.task_id = any (free)
    or cardinality(array_positions(steps, t.task_id)) < (
      select count(*) from pawl.steps s where s.task_id = t.task_id and s.state in ('enqueued', 'in_progress'))));
end $$;
