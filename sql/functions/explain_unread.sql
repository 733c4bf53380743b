-- does: says of a step queue that it looks as if nobody read it: none of its messages is held, and the first one has waited
--   for longer than patience. Null when somebody holds one, when none waits for so long, or when the queue's table is gone.
-- called by: explain_step, doctor.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.explain_unread(queue text, patience interval) returns text language plpgsql stable as $$
declare
  waited interval;
begin
  if pawl.queue_table(queue) is null then
    return null;
  end if;
  execute format('select clock_timestamp() - min(q.vt) from pgmq.%I q having max(q.vt) <= clock_timestamp()', 'q_' || queue) into waited;
  return case when waited >= patience then format('no worker holds a message of it, and the first waits for %s: is one running?',
    pawl.show_duration(date_trunc('second', waited))) end;
end $$;
