-- does: says what a queue that Pawl knows lacks in the database, and which command makes it whole (install_queue); null when
--   nothing is missing. Anybody who may use PGMQ can drop a queue's table, and with it its trigger and its messages.
-- called by: install_queue, explain_gate, explain_step, explain_request, doctor.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.explain_queue(queue text) returns text language sql stable as $$
  select format('queue %s lacks %s: ', $1, string_agg(n.what, ', ' order by n.place)) || case
    when starts_with($1, 'orchestration_') then format('select pawl.install_queue(%L, true)', $1)
    when (select q.paused from pawl.queues q where q.queue = $1) then 'pawl queue pause ' || $1
    else 'pawl queue resume ' || $1 end || ' makes it whole'
  from pawl.queue_table($1) t(known)
  cross join lateral (
    select 1 as place, 'its table' as what where t.known is null
    union all select 2, 'its trigger' where t.known is not null and not exists (select from pg_trigger g
      where g.tgrelid = t.known and g.tgname = 'pawl_announce' and g.tgenabled in ('O', 'A'))
    union all select 3, 'its row in pgmq.meta' where t.known is not null
      and not exists (select from pgmq.meta m where m.queue_name = $1)
    union all select 4, 'its function ' || f.name || $1 from (values ('read_'), ('send_'), ('delete_'), ('touch_')) f(name)
      where not exists (select from pg_proc p where p.pronamespace = 'pawl_queues'::regnamespace and p.proname = f.name || $1)) n
  having count(*) > 0
$$;
