-- does: fires what is due: tasks that start now, tasks past their deadline, attempts past their timeout, retries whose
--   back-off is over. Every orchestrator gets other tasks; one that somebody holds is left for the next round. Of a task that
--   raises no other one hears (fire_alone). Returns {fired, next_due_ms, more, put_off, raised}: fired counts the tasks of
--   which something was due; next_due_ms counts from now, null when nothing waits for a time; more is due
--   than fits one transaction; put_off counts the tasks that raised, and raised is one of them, {task_id, sqlstate, message}.
-- called by: the step-enqueuer's clock.
-- locks: tasks and their entity claims, skip locked, then their steps.
-- raises: what says nothing about one task: deadlocks, timeouts, a lack of resources.
create or replace function pawl.fire_due(quantity int default 500, processor text default null) returns jsonb
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  ids uuid[];
  sizes int[];
  held uuid[] := '{}';
  full_look boolean;
  fired int := 0;
  put_off int := 0;
  raised jsonb;
  next_at timestamptz;
begin
  perform set_config('pawl.processor', coalesce(processor, ''), true);
  -- Held tasks may have more due rows than one look takes: if nobody fired, those behind them are looked at, a few times.
  for look in 1 .. 10 loop
    with due as materialized (
      (select t.task_id, t.due_at from pawl.tasks t where t.due_at <= at and not t.task_id = any (held)
        order by t.due_at limit quantity)
      union all
      (select s.task_id, s.due_at from pawl.steps s where s.due_at <= at and not s.task_id = any (held)
        order by s.due_at limit quantity))
    select array_agg(d.task_id order by d.due_at, d.task_id), array_agg(p.step_count order by d.due_at, d.task_id),
      (select count(*) >= quantity from due)
    into ids, sizes, full_look
    from (select u.task_id, min(u.due_at) as due_at from due u group by u.task_id order by min(u.due_at) limit quantity) d
    cross join lateral (select x.template_id from pawl.tasks x where x.task_id = d.task_id offset 0) t
    join pawl.templates p on p.template_id = t.template_id;
    exit when ids is null;
    begin
      fired := pawl.fire_tasks(ids, sizes);
    exception when others then
      if pawl.concerns_all(sqlstate) then
        raise;
      end if;
      select a.fired, a.put_off, a.raised into fired, put_off, raised from pawl.fire_alone(ids, sizes) a;
    end;
    exit when fired + put_off > 0 or not full_look;
    held := held || ids;
  end loop;
  select min(d.due_at) into next_at from (
    (select t.due_at from pawl.tasks t where t.due_at is not null order by t.due_at limit 1)
    union all (select s.due_at from pawl.steps s where s.due_at is not null order by s.due_at limit 1)) d;
  return jsonb_build_object('fired', fired, 'put_off', put_off, 'raised', raised,
    'more', coalesce(fired + put_off > 0 and next_at <= at, false),
    'next_due_ms', case when next_at is not null then greatest(0, ceil(extract(epoch from next_at - at) * 1000)) end);
end $$;
