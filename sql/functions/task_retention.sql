-- does: how long a finished task of a template is kept: what configuration says of the template, else what the template
--   says, else for one step its queue's, else 7 days for one step and 30 days for more.
-- called by: close_tasks, sweep_tasks.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.task_retention(template_id int) returns interval language sql stable as $$
  select coalesce((select c.retention from pawl.template_settings c where c.namespace = p.namespace and c.name = p.name),
    p.retention, case when p.step_count = 1 then coalesce((select q.retention from pawl.template_steps s
    join pawl.queues q on q.queue = s.queue where s.template_id = p.template_id), interval '7 days') end, interval '30 days')
  from pawl.templates p where p.template_id = $1
$$;
