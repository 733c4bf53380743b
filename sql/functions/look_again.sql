-- does: asks the step-enqueuer to look at a task in a moment, because another transaction was at work with a step key.
-- called by: attach_ready_steps, free_step_keys, drop_ended_delivery, end_crashed_claim.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.look_again(one uuid) returns void language sql as $$
  insert into pgmq.q_orchestration_step_enqueues (vt, message)
  values (clock_timestamp() + interval '100 ms', jsonb_build_object('v', 1, 'task_id', one, 'reason', 'key'))
$$;
