-- does: tells whether a task's state is final.
-- called by: most functions that look at a task.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.is_final(state pawl.task_state) returns boolean language sql immutable as $$
  select state in ('complete', 'error', 'cancelled', 'timed_out', 'resolved_manually')
$$;
