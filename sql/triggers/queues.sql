-- The engine's own queues, what somebody has dropped of others, and the functions and triggers of every queue that Pawl knows.
select pawl.install_queue(q, true) from unnest(array['orchestration_task_requests', 'orchestration_step_enqueues',
  'orchestration_step_results', 'orchestration_task_finalizations']) q;
select pawl.install_queue(queue) from pawl.queues where not engine;
select pawl.write_queue_functions(queue) from pawl.queues;
do $$
declare
  missing text;
begin
  for missing in select a.missing from pawl.queues q, pawl.missing_announcer(q.queue) a(missing) where a.missing is not null loop
    execute missing;
  end loop;
end $$;
