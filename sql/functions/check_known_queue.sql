-- does: refuses a queue that nothing names, with the nearest names.
-- called by: check_step_queue, pause_queue, resume_queue, grant_queue, revoke_queue.
-- locks: nothing.
-- raises: PW010.
create or replace function pawl.check_known_queue(queue text) returns void language plpgsql as $$
begin
  if not exists (select from pawl.queues q where q.queue = check_known_queue.queue and not q.engine) then
    raise exception 'no template, configuration or request names the queue %', quote_nullable(left(queue, 80))
      using errcode = 'PW010', hint = coalesce('Known queues: ' || (select string_agg(n.queue, ', ') from (select q.queue
        from pawl.queues q where not q.engine
        order by abs(length(q.queue) - length(check_known_queue.queue)), q.queue limit 5) n),
        'Apply a template that names it, or send a first request: pawl enqueue HANDLER --queue QUEUE.');
  end if;
end $$;
