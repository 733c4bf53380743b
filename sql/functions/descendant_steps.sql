-- does: a step of a task and all steps that need it, directly or through others.
-- called by: retry_task, revive_steps.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.descendant_steps(id uuid, name text) returns pawl.step_ref[] language sql stable as $$
  with recursive below(step) as (
    select name collate "C"
    union
    select e.child from below b
    join pawl.tasks t on t.task_id = id
    join pawl.template_edges e on e.template_id = t.template_id and e.parent = b.step)
  select coalesce(array_agg((s.task_id, s.step, s.index)::pawl.step_ref order by s.step, s.index), '{}')
  from below b join pawl.steps s on s.task_id = id and s.step = b.step
$$;
