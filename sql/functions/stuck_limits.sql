-- does: for how long tasks of each template may stay in each state: what configuration says, else the template.
-- called by: stuck_tasks, report_stuck_tasks.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.stuck_limits() returns table (template_id int, state pawl.task_state, threshold interval)
language sql stable as $$
  select p.template_id, l.state::pawl.task_state, l.ms::float * interval '1 ms'
  from pawl.templates p
  left join pawl.template_settings c on c.namespace = p.namespace and c.name = p.name
  cross join lateral jsonb_each_text(coalesce(nullif(c.stuck_after, 'null'), nullif(p.stuck_after, 'null'), '{}')) l(state, ms)
$$;
