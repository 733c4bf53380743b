-- does: settles idle tasks that do not follow from their steps, unless somebody holds them. Returns how many.
-- called by: reconcile.
-- locks: tasks, skip locked, then their steps.
-- raises: nothing of its own.
create or replace function pawl.reconcile_tasks(ids uuid[], grace interval) returns int language plpgsql as $$
declare
  at timestamptz := pawl.now();
  bad uuid[] := array(select distinct d.task_id from pawl.task_defects(ids) d);
  free uuid[];
begin
  free := array(select t.task_id from pawl.tasks t where t.task_id = any (bad) and t.state_since < at - grace
    order by t.task_id for no key update skip locked);
  return pawl.repair_tasks(free, false);
end $$;
