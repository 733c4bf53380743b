-- does: tells whether the caller may work on a queue: it was granted the queue (grant_queue), or owns it.
-- called by: check_step_queue.
-- locks: nothing.
-- raises: nothing; false for an unknown queue.
create or replace function pawl.may_work(queue text) returns boolean language sql stable as $$
  select coalesce(has_sequence_privilege(pawl.asking_role(), to_regclass(format('pawl_queues.%I', 'announced_' || queue)), 'usage'), false)
$$;
