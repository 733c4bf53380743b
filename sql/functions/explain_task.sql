-- does: says why a task stands where it stands: for the task and for each of its open steps (the first 200), and for what
--   failed, who will move it. Returns {task_id, template, state, since, why, steps: [{step, index, state, attempt, queue, why,
--   until}]}; null for an unknown task.
-- called by: operators, pawl task explain, stuck reports.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.explain_task(task_id uuid) returns jsonb language sql stable set jit = off as $$
  with listed as (
    select s.* from pawl.tasks t join pawl.steps s on s.task_id = t.task_id
    where t.task_id = $1 and (s.state in ('pending', 'enqueued', 'in_progress', 'waiting_for_retry', 'waiting')
      or (s.state = 'error' and t.state <> 'complete'))
    order by s.state in ('pending'), s.step, s.index limit 200),
  steps as (
    select l.state, l.step, l.index, jsonb_strip_nulls(jsonb_build_object('step', l.step, 'index', nullif(l.index, 0),
      'state', l.state, 'attempt', nullif(l.attempt, 0), 'queue', l.queue, 'since', l.state_since,
      'until', coalesce(l.due_at, case when l.state = 'in_progress' or p.visible_at > clock_timestamp() then p.visible_at end),
      'why', pawl.explain_step(row(l.*)::pawl.steps, p.msg_id, p.visible_at, p.ahead))) as told
    from listed l left join pawl.message_places($1) p on p.step = l.step and p.index = l.index)
  select jsonb_strip_nulls(jsonb_build_object('task_id', t.task_id, 'template', t.namespace || '/' || t.template || '@' || t.version,
    'state', t.state, 'status', pawl.public_status(t.state), 'since', t.state_since, 'until', t.due_at, 'why', case
      when pawl.is_final(t.state) then 'it has ended' || coalesce(': ' || coalesce(t.error->>'message', t.error->>'type'), '')
      when t.state = 'pending' then 'it starts then'
      when t.state = 'initializing' then format('the step-enqueuer builds its steps, %s are there',
        (select count(*) from pawl.steps b where b.task_id = t.task_id))
      when t.state = 'evaluating_results' then 'the finalizer ends it'
      when t.state = 'blocked_by_failures' then 'a step has failed and the template says hold: a person decides (retry, complete or resolve)'
      else format('%s open: %s enqueued or running, %s held, %s in back-off, %s waiting', t.open_count || case t.open_count when 1 then ' step is' else ' steps are' end, t.active_count,
        t.held_count, t.retrying_count, t.waiting_count) end))
    || jsonb_build_object('steps', coalesce((select jsonb_agg(s.told order by s.state = 'pending', s.step, s.index) from steps s), '[]'))
  from pawl.tasks t where t.task_id = $1
$$;
