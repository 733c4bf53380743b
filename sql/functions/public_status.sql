-- does: the status the outside world sees for a task's state.
-- called by: replies, errors, client and command line.
-- locks: nothing.
-- raises: nothing; null for no state.
create or replace function pawl.public_status(state pawl.task_state) returns text language sql immutable strict as $$
  select case state
    when 'pending' then 'pending'
    when 'complete' then 'completed'
    when 'resolved_manually' then 'completed'
    when 'error' then 'failed'
    when 'cancelled' then 'cancelled'
    when 'timed_out' then 'timed_out'
    else 'running' end
$$;
