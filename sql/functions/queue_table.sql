-- does: finds the table of a queue; null when it is gone: anybody who may use PGMQ can drop it.
-- called by: explain_queue, install_queue, and whatever goes on without a queue that is gone.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.queue_table(queue text) returns regclass language sql stable as $$
  select to_regclass(format('pgmq.%I', 'q_' || $1))
$$;
