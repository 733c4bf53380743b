-- does: gives input and results of the needed steps of one step: what a by_reference message leaves out.
-- called by: delivery_text; PGMQ-only workers that got a by_reference message.
-- locks: nothing.
-- raises: nothing; null for an unknown step.
create or replace function pawl.step_input(task_id uuid, step text, index int default 0) returns jsonb language sql stable as $$
  select jsonb_build_object('input', t.input, 'dependencies', coalesce((
    select jsonb_object_agg(p.step, p.result) from pawl.template_edges e
    cross join lateral (select x.step, x.result from pawl.steps x
      where x.task_id = s.task_id and x.step = e.parent and x.index = 0 offset 0) p
    where e.template_id = s.template_id and e.child = s.step), '{}'))
  from pawl.steps s join pawl.tasks t on t.task_id = s.task_id
  where s.task_id = $1 and s.step = $2 and s.index = $3
$$;
