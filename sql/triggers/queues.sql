-- The engine's own queues, what somebody has dropped of others, and the functions and triggers of every queue that Pawl knows.
select pawl.install_queue(q, true) from unnest(array['orchestration_task_requests', 'orchestration_step_enqueues',
  'orchestration_step_results', 'orchestration_task_finalizations']) q;
select pawl.install_queue(queue) from pawl.queues where not engine;
select pawl.write_queue_functions(queue), pawl.announce_inserts(queue) from pawl.queues;
