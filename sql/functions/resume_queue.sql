-- does: lets a paused queue go on. Returns as configure_queue.
-- called by: operators.
-- locks: the queue's row.
-- raises: PW010 for a queue that nothing names, PW023.
create or replace function pawl.resume_queue(queue text, actor text, reason text) returns jsonb language plpgsql set jit = off as $$
begin
  perform pawl.check_known_queue(queue);
  perform pawl.begin_operation(actor, reason);
  return pawl.end_operation('resume_queue', jsonb_build_object('queue', queue), pawl.change_queue(queue, '{"paused": false}'));
end $$;
