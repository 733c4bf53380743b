-- A request_id that is no UUID may be of any length, and a btree takes no more than a third of a page: such a request could
-- not even become a dead letter.
drop index pawl.dead_letters_request;
create index dead_letters_request on pawl.dead_letters using hash ((message->>'request_id')) where queue = 'orchestration_task_requests';
