-- does: refuses a queue that the caller may not work on, and one that nothing names. The owner pays nothing for the first.
-- called by: open_for_claims, report_steps, extend_leases, release_steps.
-- locks: nothing.
-- raises: PW010, 42501.
create or replace function pawl.check_step_queue(queue text) returns void language plpgsql as $$
begin
  if (session_user <> current_user or current_setting('role') <> 'none') and not pawl.may_work(queue) then
    raise exception 'you may not work on the queue %', quote_nullable(left(queue, 80)) using errcode = 'insufficient_privilege',
      hint = 'An operator grants it: select pawl.grant_queue(role, queue).';
  end if;
  if not exists (select from pawl.queues q where q.queue = check_step_queue.queue and not q.engine) then
    perform pawl.check_known_queue(queue);
  end if;
end $$;
