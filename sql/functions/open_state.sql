-- does: the state of a task that is not final, as a function of its counters alone (docs/states.md).
-- called by: count_staged, recount_tasks, task_defects, transition_task_state_atomic.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.open_state(open int, active int, held int, retrying int, waiting int, failed int)
returns pawl.task_state language sql immutable as $$
  select case
    when open = 0 then 'evaluating_results'::pawl.task_state
    when active > 0 then 'steps_in_process'
    when held > 0 then 'enqueuing_steps'
    when retrying > 0 then 'waiting_for_retry'
    when waiting > 0 then 'waiting_for_dependencies'
    when failed > 0 then 'blocked_by_failures'
    else 'enqueuing_steps'
  end
$$;
