-- does: settles locked tasks that do not follow from their steps, each a defect of the engine, and writes them down as such;
--   looked at again, now that they are locked. Of a task that raises no other one hears: it stays as it was, for a later pass.
--   Returns how many it settled. The server's log has what was raised.
-- called by: reconcile_tasks.
-- locks: steps of the locked tasks.
-- raises: what says nothing about one task: deadlocks, timeouts, a lack of resources.
create or replace function pawl.repair_tasks(ids uuid[], alone boolean) returns int language plpgsql as $$
declare
  at timestamptz := pawl.now();
  bad uuid[];
  one uuid;
  repaired int := 0;
begin
  begin
    with defects as materialized (select * from pawl.task_defects(ids)),
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
  exception when others then
    if pawl.concerns_all(sqlstate) then
      raise;
    end if;
    if alone then
      raise warning 'repairing task %: % (%)', ids[1], sqlerrm, sqlstate;
      return 0;
    end if;
  end;
  foreach one in array ids loop
    repaired := repaired + pawl.repair_tasks(array[one], true);
  end loop;
  return repaired;
end $$;
