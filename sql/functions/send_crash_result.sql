-- does: ends the current attempt of a step whose deliveries brought no result: a failed result of type crash.
-- called by: begin_special_deliveries, reconcile_steps.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.send_crash_result(s pawl.steps, problem text) returns void language plpgsql as $$
begin
  insert into pgmq.q_orchestration_step_results (vt, message)
  values (clock_timestamp(), jsonb_build_object('v', 1, 'task_id', s.task_id, 'step', s.step, 'index', s.index,
    'attempt', s.attempt, 'status', 'failed', 'worker', s.worker,
    'error', jsonb_build_object('type', 'crash', 'message', problem, 'retryable', true)));
end $$;
