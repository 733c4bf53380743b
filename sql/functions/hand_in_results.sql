-- does: applies results whose tasks are free at once, and sends the others to the results queue. Whatever raises while
--   applying sends all of them to the queue, where the result-processor tries them one by one.
-- called by: report_steps.
-- locks: task rows, skip locked; it never waits for a task.
-- raises: nothing of its own.
create or replace function pawl.hand_in_results(results pawl.step_result[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  ids uuid[];
  free uuid[];
begin
  begin
    -- Locked inside: a row locked outside a sub-transaction and updated inside it gets a multixact.
    select d.ids, case when s.direct and not s.staged then array(select t.task_id from pawl.tasks t where t.task_id = any (d.ids)
      order by t.task_id for no key update skip locked) end
    into ids, free from pawl.engine_settings s, (select array(select distinct r.task_id from unnest(results) r) as ids) d;
    if cardinality(free) = cardinality(ids) then
      perform pawl.settle_results(results);
      return;
    elsif cardinality(free) > 0 then
      perform pawl.settle_results(array(select r from unnest(results) r where r.task_id = any (free)));
    end if;
  exception when others then
    free := null;
  end;
  insert into pgmq.q_orchestration_step_results (vt, message, headers)
  select clock_timestamp(), jsonb_strip_nulls(jsonb_build_object('v', 1, 'task_id', r.task_id, 'step', r.step, 'index', r.index,
    'attempt', r.attempt, 'status', r.status, 'worker', r.worker, 'error', r.error))
    || case when r.result is null then '{}' else jsonb_build_object('result', r.result) end,
    (select t.trace from pawl.tasks t where t.task_id = r.task_id)
  from unnest(results) r where free is null or not r.task_id = any (free);
end $$;
