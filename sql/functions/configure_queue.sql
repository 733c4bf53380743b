-- does: sets a queue's limits for all orchestrators: {rate_limit: "100/sec", burst, max_concurrency, paused, retention:
--   "7d"}; null takes a setting back, what is not named stays. Makes the queue if it is new. Attempts already under way count
--   against a new concurrency limit; a new rate goes on from the bucket's present level. Returns {queue, outcome:
--   configured|unchanged, settings}.
-- called by: operators, pawl config apply, client.ConfigureQueue.
-- locks: the queue's row.
-- raises: PW010 for a bad name or a queue of the engine, PW023, PW024 for an unknown field or a bad value.
create or replace function pawl.configure_queue(queue text, settings jsonb, actor text, reason text) returns jsonb
language plpgsql set jit = off as $$
begin
  perform pawl.begin_operation(actor, reason);
  return pawl.end_operation('configure_queue', jsonb_build_object('queue', queue), pawl.change_queue(queue, settings));
end $$;
