-- does: ends the current attempt of a step whose deliveries brought no result: a failed result of type crash.
-- called by: begin_special_deliveries, reconcile_steps.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.send_crash_result(s pawl.steps, problem text) returns void language plpgsql as $$
begin
  perform pawl.send_failure(jsonb_build_object('task_id', s.task_id, 'step', s.step, 'index', s.index, 'attempt', s.attempt), 'crash', problem,
    true, s.worker);
end $$;
