-- does: applies results to the steps of locked tasks: CAS, count down, enqueue what became ready, count, evaluate, finish.
--   Complete results of plain templates take the short way through the counters; everything else ends in settle_tasks.
-- called by: hand_in_results, apply_step_results, which hold the tasks' locks.
-- locks: steps of the locked tasks. A claim may hold one until its own commit, but a claim waits for nobody.
-- raises: nothing of its own.
create or replace function pawl.settle_results(results pawl.step_result[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  at timestamptz := pawl.now();
  settings record;
  gated text[];
  moved record;
  slow uuid[];
  ended uuid[];
  evaluated uuid[];
  ready uuid[];
begin
  select s.staged, s.max_steps_per_transaction, array(select q.queue from pawl.queues q where q.gated) as gated,
    exists (select from pawl.held_steps) or exists (select from pawl.step_identities) or exists (select from pawl.entity_claims) as held
  into settings from pawl.engine_settings s;
  gated := settings.gated;
  with r as materialized (
    select * from unnest(results) with ordinality u(task_id, step, index, attempt, status, result, error, worker, msg_id, ord)
    where u.status = 'complete'),
  done as (
    update pawl.steps s set state = 'complete', revision = s.revision + case when s.state = 'enqueued' then 2 else 1 end,
      worker = null, due_at = null, state_since = at, result = r.result, error = null, deliveries = greatest(s.deliveries, 1)
    from r
    where s.task_id = r.task_id and s.step = r.step and s.index = r.index and s.attempt = r.attempt
      and s.state in ('in_progress', 'enqueued')
    returning s.task_id, s.template_id, s.step, s.queue, r.ord),
  counts as materialized (
    select d.task_id, e.child, count(*)::smallint as n,
      not bool_or(e.child_keyed) and row_number() over () <= settings.max_steps_per_transaction as may
    from done d join pawl.template_edges e on e.template_id = d.template_id and e.parent = d.step
    group by d.task_id, e.child),
  readied as (
    update pawl.steps c set needs_open = c.needs_open - n,
      state_since = case when c.needs_open = n and may and not settings.staged and c.queue <> all (gated) then at else c.state_since end,
      state = case when c.needs_open = n and may and not settings.staged and c.queue <> all (gated) then 'enqueued' else c.state end,
      revision = c.revision + (c.needs_open = n and may and not settings.staged and c.queue <> all (gated))::int,
      attempt = c.attempt + (c.needs_open = n and may and not settings.staged and c.queue <> all (gated))::int
    from counts
    where c.task_id = counts.task_id and c.step = counts.child and c.index = 0 and c.state = 'pending' and c.needs_open >= n
    returning c.task_id, c.step, c.state, c.needs_open = 0 as ready, may and c.queue <> all (gated) as plain),
  tallies as (
    select d.task_id, sum(d.done)::int as done, sum(d.active)::int as active, bool_or(d.slow) as slow
    from (select x.task_id, 1 as done, 0 as active, false as slow from done x
      union all select y.task_id, 0, (y.ready and y.plain)::int, y.ready and not y.plain from readied y) d
    group by d.task_id)
  select array_agg(t.task_id) as ids, array_agg(t.done) as done, array_agg(t.active) as active,
    array_agg(t.task_id) filter (where t.slow) as slow,
    (select array_agg(x.ord) from done x) as applied,
    case when settings.held then (select array_agg(distinct x.queue) from done x) end as queues,
    case when settings.held then (select array_agg(distinct x.template_id) from done x) end as templates,
    (select array_agg((y.task_id, y.step, 0)::pawl.step_ref) from readied y where y.state = 'enqueued') as refs
  into moved from tallies t;

  slow := moved.slow;
  if coalesce(cardinality(moved.applied), 0) < cardinality(results) then
    slow := slow || pawl.settle_odd_results(results, moved.applied);
    moved.queues := null; -- and templates: the other steps' are not known
    moved.templates := null;
  end if;
  if settings.held then
    slow := slow || pawl.close_attempts(results, moved.queues, moved.templates);
  end if;

  -- What is slow leaves counting to settle_tasks, and so does a task that ends with a failed step: hold may keep it open.
  with tally as materialized (select * from unnest(moved.ids, moved.done, moved.active) u(task_id, done, active)
    where slow is null or not u.task_id = any (slow)),
  counted as (
    update pawl.tasks t set open_count = t.open_count - u.done, active_count = t.active_count - u.done + u.active,
      state = pawl.open_state(t.open_count - u.done, t.active_count - u.done + u.active, t.held_count, t.retrying_count,
        t.waiting_count, t.failed_count),
      revision = t.revision + (t.state <> pawl.open_state(t.open_count - u.done, t.active_count - u.done + u.active,
        t.held_count, t.retrying_count, t.waiting_count, t.failed_count))::int,
      state_since = case when t.state <> pawl.open_state(t.open_count - u.done, t.active_count - u.done + u.active,
        t.held_count, t.retrying_count, t.waiting_count, t.failed_count) then at else t.state_since end
    from tally u
    where t.task_id = u.task_id and (t.open_count > u.done or (settings.staged and t.failed_count = 0))
    returning t.task_id, t.open_count, u.active)
  select (select array_agg(u.task_id) from tally u where not exists (select from counted c where c.task_id = u.task_id)),
    (select array_agg(c.task_id) filter (where c.active > 0) from counted c),
    (select array_agg(c.task_id) filter (where c.open_count = 0) from counted c)
  into ended, ready, evaluated;
  if settings.staged then
    perform pawl.send_step_enqueue(ready, 'ready');
    perform pawl.send_task_finalization(evaluated, 'no open step');
  end if;
  if moved.refs is not null then
    perform pawl.send_step_messages(moved.refs);
  end if;
  if ended is not null then
    slow := slow || pawl.finish_tasks(ended);
  end if;
  if slow is not null then
    perform pawl.settle_tasks(array(select distinct s from unnest(slow) s order by s));
  end if;
end $$;
