-- does: makes a queue's announcing trigger, unless it is there as it should be.
-- called by: install_queue, sql/triggers/queues.sql.
-- locks: as put_trigger.
-- raises: nothing of its own.
create or replace function pawl.announce_inserts(queue text) returns void language sql as $$
  select pawl.put_trigger(pawl.queue_table($1), format('create trigger pawl_announce after insert on pgmq.%I for each statement '
    'execute function pawl.announce(%L)', 'q_' || $1, format('pawl_queues.%I', 'announced_' || $1)))
$$;
