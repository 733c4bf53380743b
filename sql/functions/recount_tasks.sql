-- does: counts the steps of locked tasks anew and evaluates their states. Returns the tasks that have no open step.
-- called by: settle_tasks.
-- locks: nothing more: the tasks are locked.
-- raises: nothing.
create or replace function pawl.recount_tasks(ids uuid[], staged boolean) returns uuid[]
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  ended uuid[];
begin
  with counts as materialized (
    select s.task_id,
      count(*) filter (where s.state in ('pending', 'enqueued', 'in_progress', 'waiting_for_retry', 'waiting'))::int as open,
      count(*) filter (where s.state in ('enqueued', 'in_progress'))::int as active,
      count(*) filter (where s.state = 'pending' and s.needs_open = 0)::int as held,
      count(*) filter (where s.state = 'waiting_for_retry')::int as retrying,
      count(*) filter (where s.state = 'waiting')::int as waiting,
      count(*) filter (where s.state in ('error', 'cancelled'))::int as failed
    from pawl.steps s where s.task_id = any (ids) group by s.task_id),
  judged as (
    select c.*, case when p.on_failure = 'hold' and c.failed > 0 and c.active + c.held + c.retrying + c.waiting = 0
      then 'blocked_by_failures' else pawl.open_state(c.open, c.active, c.held, c.retrying, c.waiting, c.failed) end as state
    from counts c join pawl.tasks t on t.task_id = c.task_id join pawl.templates p on p.template_id = t.template_id),
  kept as (
    select j.*, case when j.state = 'evaluating_results' and not staged then t.state else j.state end as next
    from judged j join pawl.tasks t on t.task_id = j.task_id),
  written as (
    update pawl.tasks t set open_count = k.open, active_count = k.active, held_count = k.held, retrying_count = k.retrying,
      waiting_count = k.waiting, failed_count = k.failed, state = k.next, revision = t.revision + (t.state <> k.next)::int,
      state_since = case when t.state <> k.next then at else t.state_since end
    from kept k
    where t.task_id = k.task_id
      and (t.state, t.open_count, t.active_count, t.held_count, t.retrying_count, t.waiting_count, t.failed_count)
        is distinct from (k.next, k.open, k.active, k.held, k.retrying, k.waiting, k.failed))
  select array_agg(j.task_id) into ended from judged j where j.state = 'evaluating_results';
  return ended;
end $$;
