-- The engine's own queues, and the functions and triggers of every queue that Pawl knows.
select pawl.install_queue(q, true) from unnest(array['orchestration_task_requests', 'orchestration_step_enqueues',
  'orchestration_step_results', 'orchestration_task_finalizations']) q;
select pawl.write_queue_functions(queue) from pawl.queues where not engine;
