-- does: ends attempts without a message of locked tasks as crashes, and writes down that somebody lost it. Of a task that
--   raises no other one hears: it stays as it was, for a later pass. Returns how many it ended. The server's log
--   has what was raised.
-- called by: reconcile_attempts.
-- locks: steps of the locked tasks.
-- raises: what says nothing about one task: deadlocks, timeouts, a lack of resources.
create or replace function pawl.repair_attempts(results pawl.step_result[], alone boolean) returns int
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  one record;
  repaired int := 0;
begin
  begin
    insert into pawl.repairs (kind, cause, task_id, step, index, attempt, at)
    select 'lost_message', 'foreign', r.task_id, r.step, r.index, r.attempt, at from unnest(results) r;
    delete from pawl.reconciler_notes n using unnest(results) r
    where n.task_id = r.task_id and n.step = r.step and n.index = r.index;
    perform pawl.settle_step_results(results);
    return cardinality(results);
  exception when others then
    if pawl.concerns_all(sqlstate) then
      raise;
    end if;
    if alone then
      raise warning 'repairing task %: % (%)', results[1].task_id, sqlerrm, sqlstate;
      return 0;
    end if;
  end;
  for one in
    select array_agg(r::pawl.step_result) as results from unnest(results) r group by r.task_id order by r.task_id
  loop
    repaired := repaired + pawl.repair_attempts(one.results, true);
  end loop;
  return repaired;
end $$;
