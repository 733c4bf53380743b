-- does: sets a queue's limits as configure_queue describes them, and has the gate looked at. Makes the queue if it is new
--   or not whole.
--   Returns {outcome: configured|unchanged, settings}.
-- called by: configure_queue, pause_queue, resume_queue: within their operations.
-- locks: the queue's row.
-- raises: PW010 for a bad name or a queue of the engine, PW024 for an unknown field or a bad value.
create or replace function pawl.change_queue(queue text, settings jsonb) returns jsonb language plpgsql as $$
#variable_conflict use_variable
declare
  was pawl.queues;
  is_now pawl.queues;
  at timestamptz;
  made boolean := pawl.install_queue(queue);
begin
  select * into was from pawl.queues q where q.queue = queue for update;
  at := pawl.now();
  is_now := pawl.queue_settings(was, settings);
  if is_now is distinct from was then
    update pawl.queues q set paused = is_now.paused, rate_limit = is_now.rate_limit, rate_period = is_now.rate_period,
      burst = is_now.burst, max_concurrency = is_now.max_concurrency, retention = is_now.retention,
      tokens = case when is_now.rate_limit is not null and was.rate_limit is not null
        then pawl.gate_level(was, at, was.unclaimed_count) end,
      tokens_at = at, unclaimed_count = case when is_now.rate_limit is null then 0 else was.unclaimed_count end
    where q.queue = queue;
    if is_now.max_concurrency is not null and was.max_concurrency is null then
      perform pawl.take_slots(queue);
    end if;
  end if;
  if made or is_now is distinct from was then
    insert into pgmq.q_orchestration_step_enqueues (vt, message)
    values (clock_timestamp(), jsonb_build_object('v', 1, 'queue', queue, 'reason', 'configured'));
  end if;
  return jsonb_build_object('outcome', case when made or is_now is distinct from was then 'configured' else 'unchanged' end,
    'settings', pawl.show_queue_settings(is_now));
end $$;
