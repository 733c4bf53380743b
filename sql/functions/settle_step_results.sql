-- does: applies results to the steps of locked tasks: CAS, count down, enqueue what became ready, count, complete.
--   Complete results of plain templates take the short way through the counters; everything else ends in settle_tasks.
--   Returns the messages whose results ended their attempts; the others were absorbed, or are dead letters.
-- called by: hand_in_step_results, apply_step_results, fire_tasks, repair_attempts, which hold the tasks' locks.
-- locks: steps of the locked tasks. A claim may hold one until its own commit, but a claim waits for nobody.
-- raises: nothing of its own.
create or replace function pawl.settle_step_results(results pawl.step_result[]) returns bigint[]
language plpgsql as $$
declare
  at timestamptz := pawl.now();
  ending timestamptz := at + interval '1 microsecond'; -- a history has a task's end after its last step's
  settings record;
  moved record;
  counted record;
  odd record;
  slow uuid[];
begin
  select s.staged, s.max_steps_per_transaction as most, array(select q.queue from pawl.queues q where q.gated) as gated,
    exists (select from pawl.held_steps) or exists (select from pawl.step_identities) or exists (select from pawl.entity_claims) as held
  into settings from pawl.engine_settings s;
  with done as (
    update pawl.steps s set state = 'complete', revision = s.revision + case when s.state = 'enqueued' then 2 else 1 end,
      worker = null, due_at = null, state_since = at, result = r.result, error = null, deliveries = greatest(s.deliveries, 1)
    from unnest(results) with ordinality r(task_id, step, index, attempt, status, result, error, worker, msg_id, ord)
    where r.status = 'complete' and s.task_id = r.task_id and s.step = r.step and s.index = r.index and s.attempt = r.attempt
      and s.state in ('in_progress', 'enqueued')
    returning s.task_id, s.template_id, s.step, s.queue, r.ord, r.msg_id),
  counts as materialized (
    select d.task_id, e.child, count(*)::smallint as n,
      not bool_or(e.child_keyed) and row_number() over () <= settings.most as may
    from done d join pawl.template_edges e on e.template_id = d.template_id and e.parent = d.step
    group by d.task_id, e.child),
  readied as (
    update pawl.steps c set needs_open = c.needs_open - n,
      state_since = case when c.needs_open = n and starts and c.queue <> all (settings.gated) then at else c.state_since end,
      state = case when c.needs_open = n and starts and c.queue <> all (settings.gated) then 'enqueued' else c.state end,
      revision = c.revision + (c.needs_open = n and starts and c.queue <> all (settings.gated))::int,
      attempt = c.attempt + (c.needs_open = n and starts and c.queue <> all (settings.gated))::int
    from (select k.*, k.may and not settings.staged as starts from counts k) k
    where c.task_id = k.task_id and c.step = k.child and c.index = 0 and c.state = 'pending' and c.needs_open >= n
    returning c.task_id, c.step, c.state, c.needs_open = 0 as ready, may and c.queue <> all (settings.gated) as plain),
  tallies as (
    select d.task_id, sum(d.done)::int as done, sum(d.active)::int as active, bool_or(d.slow) as slow
    from (select x.task_id, 1 as done, 0 as active, false as slow from done x
      union all select y.task_id, 0, (y.ready and y.plain)::int, y.ready and not y.plain from readied y) d
    group by d.task_id)
  select array_agg(t.task_id) as ids, array_agg(t.done) as done, array_agg(t.active) as active,
    array_agg(t.task_id) filter (where t.slow) as slow,
    (select array_agg(x.ord) from done x) as applied, (select array_agg(x.msg_id) from done x) as messages,
    case when settings.held then (select array_agg(distinct x.queue) from done x) end as queues,
    case when settings.held then (select array_agg(distinct x.template_id) from done x) end as templates,
    (select array_agg((y.task_id, y.step, 0)::pawl.step_ref) from readied y where y.state = 'enqueued') as refs
  into moved from tallies t;

  slow := moved.slow;
  if coalesce(cardinality(moved.applied), 0) < cardinality(results) then
    odd := pawl.settle_odd_step_results(results, moved.applied);
    slow := slow || odd.touched;
    moved.messages := moved.messages || odd.messages;
    moved.queues := null; -- and templates: the other steps' are not known
    moved.templates := null;
  end if;
  if settings.held then
    slow := slow || pawl.close_attempts(results, moved.queues, moved.templates);
  end if;
  if moved.refs is not null then
    perform pawl.send_step_messages(moved.refs);
  end if;

  if settings.staged then
    slow := slow || pawl.count_staged(moved.ids, moved.done, moved.active, slow);
  else
    -- A task goes on as it is while a step of it is active, and is complete with its last step. What comes to any other
    -- state, and what is slow, is counted by settle_tasks: hold may keep a task with a failed step open.
    with tally as materialized (select * from unnest(moved.ids, moved.done, moved.active) u(task_id, done, active)
      where slow is null or not u.task_id = any (slow)),
    counted as (
      update pawl.tasks t set open_count = t.open_count - u.done, active_count = t.active_count - u.done + u.active,
        state = case when t.open_count = u.done then 'complete' else t.state end,
        revision = t.revision + case when t.open_count = u.done then 2 else 0 end,
        state_since = case when t.open_count = u.done then ending else t.state_since end,
        finalized_at = case when t.open_count = u.done then ending end,
        due_at = case when t.open_count > u.done then t.due_at end,
        result = case when t.open_count = u.done then (select r.result from pawl.task_result(t.task_id, t.template_id) r) end
      from tally u
      where t.task_id = u.task_id and t.state = 'steps_in_process'
        and (t.active_count + u.active > u.done or (t.open_count = u.done and t.failed_count = 0))
      returning t.task_id, t.open_count = 0 as ended, t.key is not null or t.reply_to is not null as told)
    select array_agg(c.task_id) filter (where c.ended and c.told) as told, bool_or(c.ended) as ended,
      (select array_agg(u.task_id) from tally u where not exists (select from counted x where x.task_id = u.task_id)) as others
    into counted from counted c;
    slow := slow || counted.others;
    if counted.told is not null then
      perform pawl.close_tasks(counted.told);
    end if;
    if counted.ended then
      perform pawl.announce_finished();
    end if;
  end if;
  if slow is not null then
    perform pawl.settle_tasks(array(select distinct s from unnest(slow) s order by s));
  end if;
  return moved.messages;
end $$;
