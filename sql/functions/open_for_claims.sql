-- does: tells whether workers may claim from a queue: not while it is paused, what was sent before the pause included.
-- called by: claim_steps.
-- locks: nothing.
-- raises: PW010 for a queue that nothing names, 42501 for one that the caller may not work on.
create or replace function pawl.open_for_claims(queue text) returns boolean language plpgsql stable as $$
declare
  paused boolean;
begin
  select q.paused into paused from pawl.queues q where q.queue = open_for_claims.queue and not q.engine;
  if not found or session_user <> current_user or current_setting('role') <> 'none' then
    perform pawl.check_step_queue(queue);
  end if;
  return not paused;
end $$;
