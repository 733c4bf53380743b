-- does: says what became of a request that made no task of its own, by its id: it waits, a task that was there has it, it was
--   refused, or it is a dead letter. Returns {request_id, since, why, waits, task_id: whom it met}; null for one that nobody
--   knows.
-- called by: people, pawl task explain, show and wait, when there is no task with an id.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.explain_request(request_id uuid) returns jsonb language sql stable as $$
  with orchestrators as (
    select max(p.heartbeat_at) as heard from pawl.processors p where p.kind = 'orchestrator' and p.stopped_at is null),
  found as (
    select 1 as place, q.enqueued_at as since, null::uuid as task_id, coalesce((
        select format('it waits for its template to be unparked: %s', t.parked_reason) from pawl.templates t
        where t.parked_reason is not null and t.namespace || '/' || t.name = split_part(q.message->>'template', '@', 1)
        order by t.template_id desc limit 1), (
        select min(pawl.explain_queue(u.queue)) from (select distinct s.queue from pawl.template_steps s where s.template_id = (
          select max(t.template_id) from pawl.templates t where t.namespace || '/' || t.name = split_part(q.message->>'template', '@', 1))) u), case
        when o.heard > pawl.now() - interval '30 s' then 'it waits in orchestration_task_requests for an orchestrator'
        else 'it waits in orchestration_task_requests, and no orchestrator has a heartbeat: start one with orchestrator' end) as why
    from pgmq.q_orchestration_task_requests q, orchestrators o where q.message->>'request_id' = $1::text
    union all
    select case when d.status = 'open' then 2 else 4 end, d.dead_at, null,
      format('it is dead letter %s%s: %s', d.dead_letter_id, case when d.status <> 'open' then ', ' || d.status else '' end, d.reason)
    from pawl.dead_letters d where d.queue = 'orchestration_task_requests' and d.message->>'request_id' = $1::text
    union all
    select 3, a.absorbed_at, a.task_id, case when a.reason = 'duplicate request'
      then format('task %s, which holds its key or id, has it', a.task_id)
      else format('it was refused, %s: task %s holds its key or id', a.reason, a.task_id) end
    from pawl.absorbed a where a.queue = 'orchestration_task_requests' and a.message->>'request_id' = $1::text)
  select jsonb_strip_nulls(jsonb_build_object('request_id', $1, 'since', f.since, 'why', f.why, 'waits', f.place = 1,
    'task_id', f.task_id))
  from found f order by f.place, f.since desc limit 1
$$;
