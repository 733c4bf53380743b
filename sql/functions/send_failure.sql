-- does: ends an attempt whose worker does not: a failed result. attempt is {task_id, step, index?, attempt}, as its message says.
-- called by: send_crash_result, refuse_claim, refuse_delivery.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.send_failure(attempt jsonb, kind text, problem text, retryable boolean, worker text default null)
returns void language sql as $$
  insert into pgmq.q_orchestration_step_results (vt, message)
  values (clock_timestamp(), jsonb_build_object('v', 1, 'task_id', attempt->'task_id', 'step', attempt->'step',
    'index', coalesce(attempt->'index', '0'), 'attempt', attempt->'attempt', 'status', 'failed', 'worker', worker,
    'error', jsonb_build_object('type', kind, 'message', problem, 'retryable', retryable)))
$$;
