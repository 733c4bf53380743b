-- does: the statement that makes a queue's announcing trigger; null when it is there as it should be.
-- called by: install_queue, sql/triggers/queues.sql.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.missing_announcer(queue text) returns text language sql stable as $$
  select pawl.missing_trigger(pawl.queue_table($1), format('create trigger pawl_announce after insert on pgmq.%I for each statement '
    'execute function pawl.announce(%L)', 'q_' || $1, format('pawl_queues.%I', 'announced_' || $1)))
$$;
