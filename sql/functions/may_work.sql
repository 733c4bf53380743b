-- does: tells whether the caller may work on a queue: it was granted the queue (grant_queue), or owns it. Within functions
--   that run with the owner's rights the caller is the session's user, or the role it has set.
-- called by: check_step_queue.
-- locks: nothing.
-- raises: nothing; false for an unknown queue.
create or replace function pawl.may_work(queue text) returns boolean language sql stable as $$
  select coalesce(has_sequence_privilege(case current_setting('role') when 'none' then session_user::text
    else current_setting('role') end, to_regclass(format('pawl_queues.%I', 'announced_' || queue)), 'usage'), false)
$$;
