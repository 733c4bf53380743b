-- What became of a request, found by its id: for those who wait for a request that made no task of its own.
create index absorbed_request on pawl.absorbed ((message->>'request_id')) where queue = 'orchestration_task_requests';
create index dead_letters_request on pawl.dead_letters ((message->>'request_id')) where queue = 'orchestration_task_requests';
