-- does: sets a queue's limits for all orchestrators: {rate_limit: "100/sec", burst, max_concurrency, paused, retention:
--   "7d"}; null takes a setting back, what is not named stays. Makes the queue if it is new. Attempts already under way count
--   against a new concurrency limit; a new rate goes on from the bucket's present level. Returns {queue, outcome:
--   configured|unchanged, settings}.
-- called by: operators, pawl config apply, client.ConfigureQueue, pause_queue, resume_queue.
-- locks: the queue's row.
-- raises: PW010 for a bad name or a queue of the engine, PW023, PW024 for an unknown field or a bad value.
create or replace function pawl.configure_queue(queue text, settings jsonb, actor text, reason text) returns jsonb
language plpgsql as $$
#variable_conflict use_variable
declare
  was pawl.queues;
  is_now pawl.queues;
begin
  perform pawl.begin_operation(actor, reason);
  perform pawl.install_queue(queue);
  select * into was from pawl.queues q where q.queue = queue for update;
  is_now := pawl.queue_settings(was, settings);
  if is_now is distinct from was then
    update pawl.queues q set paused = is_now.paused, rate_limit = is_now.rate_limit, rate_period = is_now.rate_period,
      burst = is_now.burst, max_concurrency = is_now.max_concurrency, retention = is_now.retention,
      tokens = case when is_now.rate_limit is not null and was.rate_limit is not null
        then pawl.gate_level(was, pawl.now(), was.unclaimed_count) end,
      tokens_at = pawl.now(), unclaimed_count = case when is_now.rate_limit is null then 0 else was.unclaimed_count end
    where q.queue = queue;
    if is_now.max_concurrency is not null and was.max_concurrency is null then
      perform pawl.take_slots(queue);
    end if;
    insert into pgmq.q_orchestration_step_enqueues (vt, message)
    values (clock_timestamp(), jsonb_build_object('v', 1, 'queue', queue, 'reason', 'configured'));
  end if;
  return pawl.end_operation('configure_queue', jsonb_build_object('queue', queue), jsonb_build_object(
    'outcome', case when is_now is distinct from was then 'configured' else 'unchanged' end,
    'settings', pawl.show_queue_settings(is_now)));
end $$;
