-- does: the tasks that have been in one state for longer than configuration or their template allows (stuck_after), the
--   longest first. Returns [{task_id, template, state, since, over, status, notes, report_id}]; nothing is moved.
-- called by: operators, pawl stuck; reports are made by report_stuck_tasks.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.stuck_tasks(quantity int default 100) returns jsonb language sql stable as $$
  select coalesce(jsonb_agg(jsonb_strip_nulls(jsonb_build_object('task_id', x.task_id, 'template', x.template, 'state', x.state,
    'since', x.state_since, 'over', pawl.show_duration(date_trunc('second', x.idle - x.threshold)), 'status', r.status,
    'notes', r.notes, 'report_id', r.report_id)) order by x.state_since, x.task_id), '[]')
  from (
    select t.task_id, t.namespace || '/' || t.template || '@' || t.version as template, t.state, t.state_since, p.threshold,
      n.now - t.state_since as idle
    from (select pawl.now() as now) n cross join pawl.stuck_limits() p
    join pawl.tasks t on t.template_id = p.template_id and t.state = p.state and t.state_since < n.now - p.threshold
    order by t.state_since limit quantity) x
  left join pawl.stuck_reports r on r.task_id = x.task_id and r.state = x.state::text and r.state_since = x.state_since
$$;
