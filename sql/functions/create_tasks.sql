-- does: creates tasks with their steps, counters and first messages. What a gate, a step key, staged mode or the size of
--   the template keeps from starting at once is left to settle_tasks or to the step-enqueuer. Returns the ids of those
--   created: a request whose task_id exists creates nothing.
-- called by: process_task_requests, submit_requests, requests in the order of their ids: of two that make one task at once the
--   later waits for the earlier's commit.
-- locks: only the rows it creates.
-- raises: nothing of its own.
create or replace function pawl.create_tasks(requests pawl.task_request[]) returns uuid[]
language plpgsql as $$
declare
  at timestamptz := pawl.now();
  settings pawl.engine_settings;
  slow_templates int[] := '{}';
  made record;
begin
  select * into settings from pawl.engine_settings;
  if exists (select from pawl.queues q where q.gated) then
    slow_templates := array(select distinct s.template_id from (select distinct u.template_id from unnest(requests) u) r
      join pawl.template_steps s on s.template_id = r.template_id join pawl.queues q on q.queue = s.queue and q.gated);
  end if;

  with wanted as (
    select r.*, t.namespace, t.name, t.version, t.step_count, t.root_count, t.timeout,
      (r.message->>'run_at')::timestamptz as run_at,
      case when t.step_count > settings.max_steps_per_transaction then 'initializing'
        when t.has_special_steps or r.template_id = any (slow_templates) then 'enqueuing_steps'
        else 'steps_in_process' end::pawl.task_state as begins
    from unnest(requests) r join pawl.templates t on t.template_id = r.template_id),
  inserted as (
    insert into pawl.tasks (task_id, template_id, namespace, template, version, key, scope, epoch, correlation_id, requester,
      reply_to, tags, input, trace, requested_at, started_at, state, open_count, active_count, held_count, state_since, due_at)
    select w.task_id, w.template_id, w.namespace, w.name, w.version, w.key, w.scope, w.epoch, w.message->>'correlation_id',
      w.message->>'requester', w.message->>'reply_to', w.message->'tags', w.message->'input', pawl.trace_headers(w.headers), at,
      case when w.run_at > at then null else at end,
      case when w.run_at > at then 'pending' else w.begins end, w.step_count,
      case when w.begins = 'steps_in_process' and (w.run_at > at) is not true then w.root_count else 0 end, 0, at,
      case when w.run_at > at then w.run_at else at + w.timeout end
    from wanted w
    -- The insert alone would wait for whoever is changing a task that is there, a handler's own transaction as well.
    where not exists (select from pawl.tasks t where t.task_id = w.task_id offset 0)
    on conflict (task_id) do nothing
    returning task_id, template_id, state, open_count),
  created as (
    insert into pawl.steps (task_id, step, template_id, handler, queue, state, revision, attempt, needs_open, state_since)
    select i.task_id, s.step, s.template_id, s.handler, s.queue,
      case when b.begun then 'enqueued' else 'pending' end::pawl.step_state,
      b.begun::int, b.begun::int, s.needs_count, at
    from inserted i
    join pawl.template_steps s on s.template_id = i.template_id
    cross join lateral (select i.state = 'steps_in_process' and s.needs_count = 0 and not settings.staged) b(begun)
    where i.open_count <= settings.max_steps_per_transaction
    returning task_id, step, index, state)
  select array_agg(i.task_id) as ids,
    array_agg(i.task_id) filter (where i.state = 'enqueuing_steps') as slow,
    array_agg(i.task_id) filter (where i.state = 'initializing') as large,
    array_agg(i.task_id) filter (where i.state = 'steps_in_process') as plain, bool_or(i.state = 'pending') as timed,
    (select array_agg((c.task_id, c.step, c.index)::pawl.step_ref) from created c where c.state = 'enqueued') as begun
  into made from inserted i;
  if made.begun is not null then
    perform pawl.send_step_messages(made.begun);
  end if;
  if made.timed then
    perform pawl.announce_due();
  end if;
  if made.slow is not null then
    perform pawl.settle_tasks(made.slow);
  end if;
  if settings.staged then
    perform pawl.send_step_enqueue(made.plain, 'created');
  end if;
  if made.large is not null then
    perform pawl.send_step_enqueue(made.large, 'build');
  end if;
  return coalesce(made.ids, '{}');
end $$;
