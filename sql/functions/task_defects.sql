-- does: finds open tasks that do not follow from their steps, in one snapshot, in which every transaction of the engine is
--   whole: counters or state that differ, ready steps that nobody starts, needs miscounted, timers missing, large tasks that
--   nobody builds, tasks without open steps that nobody finishes. A task with a message at the step-enqueuer or
--   the finalizer has its owner.
-- called by: reconcile_tasks, doctor.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.task_defects(ids uuid[]) returns table (task_id uuid, kind text, found jsonb) language sql as $$
  with settled as materialized (
    select t.*, p.on_failure from pawl.tasks t join pawl.templates p on p.template_id = t.template_id
    where t.task_id = any (ids) and not pawl.is_final(t.state)),
  counts as (
    select t.task_id, t.on_failure, t.state, array[t.open_count, t.active_count, t.held_count, t.retrying_count, t.waiting_count,
      t.failed_count] as kept, c.counted
    from settled t cross join lateral (select array[
      count(*) filter (where s.state in ('pending', 'enqueued', 'in_progress', 'waiting_for_retry', 'waiting')),
      count(*) filter (where s.state in ('enqueued', 'in_progress')),
      count(*) filter (where s.state = 'pending' and s.needs_open = 0), count(*) filter (where s.state = 'waiting_for_retry'),
      count(*) filter (where s.state = 'waiting'), count(*) filter (where s.state in ('error', 'cancelled'))]::int[] as counted
      from pawl.steps s where s.task_id = t.task_id) c
    where t.state not in ('pending', 'initializing')),
  defects as (
    select c.task_id, case when c.counted[1] = 0 and c.counted = c.kept then 'unfinished' else 'counters' end as kind,
      jsonb_build_object('state', c.state, 'kept', c.kept, 'counted', c.counted) as found
    from counts c where c.counted <> c.kept or (c.counted[1] = 0 and not (c.on_failure = 'hold' and c.counted[6] > 0))
      or c.state <> case
      when c.on_failure = 'hold' and c.counted[6] > 0 and c.counted[2] + c.counted[3] + c.counted[4] + c.counted[5] = 0
      then 'blocked_by_failures'
      else pawl.open_state(c.counted[1], c.counted[2], c.counted[3], c.counted[4], c.counted[5], c.counted[6]) end
    union all
    select s.task_id, 'unstarted', jsonb_build_object('step', s.step, 'index', s.index)
    from counts c join pawl.steps s on s.task_id = c.task_id and s.state = 'pending' and s.needs_open = 0
      and not exists (select from pawl.held_steps h where h.task_id = s.task_id and h.step = s.step and h.index = s.index
        and h.released_at is null)
    union all
    select s.task_id, 'needs', jsonb_build_object('step', s.step, 'kept', s.needs_open, 'counted', n.open)
    from counts c join pawl.steps s on s.task_id = c.task_id and s.state = 'pending'
    cross join lateral (select count(*) as open from pawl.template_edges e
      cross join lateral (select p.state from pawl.steps p where p.task_id = s.task_id and p.step = e.parent and p.index = 0 offset 0) f
      where e.template_id = s.template_id and e.child = s.step and not (f.state in ('complete', 'resolved_manually')
        or (f.state = 'skipped' and e.accepts_skipped))) n
    where n.open <> s.needs_open
    union all
    select s.task_id, 'timer', jsonb_build_object('step', s.step, 'state', s.state)
    from counts c join pawl.steps s on s.task_id = c.task_id and s.state = 'waiting_for_retry' and s.due_at is null
    union all
    select t.task_id, case t.state when 'pending' then 'timer' else 'unbuilt' end, jsonb_build_object('state', t.state)
    from settled t where t.state = 'initializing' or (t.state = 'pending' and t.due_at is null))
  select d.* from defects d
  where not exists (select from pgmq.q_orchestration_step_enqueues m where m.message->>'task_id' = d.task_id::text)
    and (d.kind <> 'unfinished' or not exists (
      select from pgmq.q_orchestration_task_finalizations m where m.message->>'task_id' = d.task_id::text))
$$;
