-- does: says of a step queue that it looks as if nobody read it: none of its messages is held, and the first one has waited
--   for longer than patience. Null when somebody holds one, when none waits for so long, or when the queue's table is gone.
-- called by: explain_step, doctor.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.explain_unread(queue text, patience interval) returns text language plpgsql stable as $$
declare
  first timestamptz;
  last timestamptz;
begin
  if pawl.queue_table(queue) is null then
    return null;
  end if;
  execute format('select min(q.vt), max(q.vt) from pgmq.%I q', 'q_' || queue) into first, last;
  if (last <= clock_timestamp() and first <= clock_timestamp() - patience) is not true then
    return null;
  end if;
  return format('no worker holds a message of it, and the first waits for %s: is one running?',
    pawl.show_duration(date_trunc('second', clock_timestamp() - first)));
end $$;
