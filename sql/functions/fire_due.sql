-- does: fires what is due: tasks that start now, tasks past their deadline, attempts past their timeout, retries whose
--   back-off is over. Every orchestrator gets other tasks; one that somebody holds is left for the next round. Returns
--   {fired, next_due_ms, more}: fired counts the tasks looked at, one that another has just fired included; next_due_ms counts
--   from now, null when nothing waits for a time.
-- called by: the step-enqueuer's clock.
-- locks: tasks by id and their entity claims, skip locked, then their steps.
-- raises: nothing of its own.
create or replace function pawl.fire_due(quantity int default 500, processor text default null) returns jsonb
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  ids uuid[];
  late uuid[];
  starting uuid[];
  retries pawl.step_ref[];
  timeouts pawl.step_result[];
  next_at timestamptz;
begin
  perform set_config('pawl.processor', coalesce(processor, ''), true);
  ids := array(
    select d.task_id from (
      (select t.task_id, t.due_at from pawl.tasks t where t.due_at <= at order by t.due_at limit quantity)
      union all
      (select s.task_id, s.due_at from pawl.steps s where s.due_at <= at order by s.due_at limit quantity)) d
    group by d.task_id order by min(d.due_at) limit quantity);
  if cardinality(ids) > 0 then
    ids := array(select t.task_id from pawl.tasks t where t.task_id = any (ids) order by t.task_id for no key update skip locked);
    if exists (select from pawl.entity_claims) then
      ids := pawl.lock_claims(ids);
    end if;
    late := array(select t.task_id from pawl.tasks t where t.task_id = any (ids) and t.due_at <= at
      and t.state <> 'pending' and not pawl.is_final(t.state));
    if cardinality(late) > 0 then
      perform pawl.end_tasks(late, 'timed_out', '{"type": "timeout", "message": "the task ran longer than its timeout"}');
    end if;
    starting := array(select t.task_id from pawl.tasks t where t.task_id = any (ids) and t.state = 'pending' and t.due_at <= at);
    if cardinality(starting) > 0 then
      perform pawl.start_tasks(starting);
    end if;
    timeouts := array(select (s.task_id, s.step, s.index, s.attempt, 'failed', null,
        '{"type": "timeout", "message": "the attempt ran longer than the step''s timeout"}'::jsonb, s.worker, null)::pawl.step_result
      from pawl.steps s where s.task_id = any (ids) and s.due_at <= at and s.state in ('in_progress', 'enqueued'));
    if cardinality(timeouts) > 0 then
      perform pawl.settle_results(timeouts);
    end if;
    retries := array(select (s.task_id, s.step, s.index)::pawl.step_ref
      from pawl.steps s where s.task_id = any (ids) and s.due_at <= at and s.state = 'waiting_for_retry'
      order by s.due_at, s.task_id, s.step limit (select e.max_steps_per_transaction from pawl.engine_settings e));
    if cardinality(retries) > 0 then
      perform pawl.start_attempts(retries);
      perform pawl.settle_tasks(array(select distinct r.task_id from unnest(retries) r order by r.task_id));
    end if;
  end if;
  select min(d.due_at) into next_at from (
    (select t.due_at from pawl.tasks t where t.due_at is not null order by t.due_at limit 1)
    union all (select s.due_at from pawl.steps s where s.due_at is not null order by s.due_at limit 1)) d;
  return jsonb_build_object('fired', cardinality(ids), 'more', coalesce(cardinality(ids) > 0 and next_at <= at, false),
    'next_due_ms', case when next_at is not null then greatest(0, ceil(extract(epoch from next_at - at) * 1000)) end);
end $$;
