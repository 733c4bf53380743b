-- does: the keys of steps whose template gives them one, with the steps' states; null for a key that cannot be made: a
--   value is missing, or the text is empty or longer than 255 bytes. A key's scope is the step's handler.
-- called by: attach_ready_steps, free_step_keys, end_step_by_hand.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.step_keys(refs pawl.step_ref[])
returns table (task_id uuid, step text, index int, state pawl.step_state, scope text, key text) language sql stable as $$
  select s.task_id, s.step, s.index, s.state, s.handler,
    (select e.key from pawl.evaluate_expression(ts.step_key, t.input) e(key) where octet_length(e.key) between 1 and 255)
  from unnest(refs) r
  join pawl.steps s on s.task_id = r.task_id and s.step = r.step and s.index = r.index
  join pawl.template_steps ts on ts.template_id = s.template_id and ts.step = s.step and ts.step_key is not null
  join pawl.tasks t on t.task_id = s.task_id
$$;
