-- does: stops a queue: nothing is released to it and nothing claimed from it, until resume_queue. What
--   runs goes on. Returns as configure_queue.
-- called by: operators.
-- locks: the queue's row.
-- raises: PW010 for a queue that nothing names, PW023.
create or replace function pawl.pause_queue(queue text, actor text, reason text) returns jsonb language plpgsql set jit = off as $$
begin
  perform pawl.check_known_queue(queue);
  perform pawl.begin_operation(actor, reason);
  return pawl.end_operation('pause_queue', jsonb_build_object('queue', queue), pawl.change_queue(queue, '{"paused": true}'));
end $$;
