-- does: says of a step queue that it looks as if nobody read it: none of its first hundred messages is held, and one of them
--   has waited for longer than patience. Who reads takes the first ones; the rest is not looked at, for a task asks for each of its
--   steps. Null when somebody holds one, when none waits for so long, or when the queue's table is gone.
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
  execute format('select clock_timestamp() - min(f.vt) from (select q.vt from pgmq.%I q order by q.msg_id limit 100) f
    having max(f.vt) <= clock_timestamp()', 'q_' || queue) into waited;
  return case when waited >= patience then format('no worker holds a message of it, and the first waits for %s: is one running?',
    pawl.show_duration(date_trunc('second', waited))) end;
end $$;
