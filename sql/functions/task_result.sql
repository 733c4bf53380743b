-- does: gives the result of a task whose steps have ended: that of its template's result step, or those of all steps that
--   nobody needs. A table function, because the planner puts such a one in place of its call; a scalar one with a query in
--   it would be a query of its own for each task.
-- called by: settle_step_results, finish_counted_tasks.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.task_result(task_id uuid, template_id int) returns table (result jsonb) language sql stable as $$
  select case when p.result_step is not null
    then (select l.result from pawl.steps l where l.task_id = $1 and l.step = p.result_step and l.index = 0)
    else (select jsonb_object_agg(l.step, l.result) from pawl.template_steps ts
      join pawl.steps l on l.task_id = $1 and l.step = ts.step and l.index = 0
      where ts.template_id = p.template_id and not ts.has_dependents) end
  from pawl.templates p where p.template_id = $2
$$;
