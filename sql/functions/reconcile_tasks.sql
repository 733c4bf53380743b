-- does: settles tasks that do not follow from their steps. Each is a defect of the engine, and written down as such.
-- called by: reconcile.
-- locks: tasks, skip locked, then their steps.
-- raises: nothing of its own.
create or replace function pawl.reconcile_tasks(ids uuid[], grace interval) returns int language plpgsql as $$
declare
  at timestamptz := pawl.now();
  bad uuid[] := array(select distinct d.task_id from pawl.task_defects(ids) d);
  free uuid[];
begin
  if cardinality(bad) = 0 then
    return 0;
  end if;
  free := array(select t.task_id from pawl.tasks t where t.task_id = any (bad) and t.state_since < at - grace
    order by t.task_id for no key update skip locked);
  -- Looked at again under the lock.
  with defects as materialized (select * from pawl.task_defects(free)),
  written as (
    insert into pawl.repairs (kind, cause, task_id, found, at)
    select d.kind, 'engine', d.task_id, jsonb_agg(d.found), at from defects d group by d.task_id, d.kind
    returning pawl.repairs.task_id)
  select array_agg(distinct w.task_id) into bad from written w;
  if bad is null then
    return 0;
  end if;
  update pawl.tasks t set due_at = at where t.task_id = any (bad) and t.state = 'pending' and t.due_at is null;
  update pawl.steps s set due_at = at where s.task_id = any (bad) and s.state = 'waiting_for_retry' and s.due_at is null;
  perform pawl.send_step_enqueue(array(select t.task_id from pawl.tasks t where t.task_id = any (bad) and t.state = 'initializing'), 'build');
  perform pawl.settle_tasks(bad);
  return cardinality(bad);
end $$;
