-- does: what a message asks for that names a task, for locked tasks: goes on building large ones, as many as fit one
--   transaction, and asks again for the others; starts what is ready, and what waits for the keys of ended steps.
-- called by: process_step_enqueues.
-- locks: steps of the locked tasks; more tasks, skip locked (free_task_keys).
-- raises: nothing of its own.
create or replace function pawl.settle_asked_tasks(tasks uuid[]) returns void language plpgsql set jit = off as $$
declare
  later uuid[] := '{}';
  fits boolean;
  one uuid;
begin
  for one, fits in
    select b.task_id, row_number() over w = 1 or sum(least(b.missing, b.bound)) over w <= b.bound
    from (select t.task_id, e.max_steps_per_transaction as bound,
        p.step_count - (select count(*) from pawl.steps s where s.task_id = t.task_id) as missing
      from pawl.tasks t join pawl.templates p using (template_id) cross join pawl.engine_settings e
      where t.task_id = any (tasks) and t.state = 'initializing') b
    window w as (order by b.task_id rows unbounded preceding) order by b.task_id
  loop
    if fits then
      perform pawl.build_steps(one);
    else
      later := later || one;
    end if;
  end loop;
  perform pawl.send_step_enqueue(later, 'build');
  perform pawl.settle_tasks(tasks || pawl.free_task_keys(tasks));
end $$;
