-- does: moves the rows of entity claims back whose steps a worker hands back: the body never ran, or has returned. The next
--   delivery claims anew. A row that somebody holds keeps its claim, for the janitor.
-- called by: release_steps, when there are claims.
-- locks: the messages and claims, skip locked; the users' rows, nowait.
-- raises: what the users' tables raise.
create or replace function pawl.release_claims(queue text, leases jsonb) returns void language plpgsql as $$
declare
  c pawl.entity_claims;
begin
  for c in execute format($q$
    select x.* from jsonb_array_elements($1) l
    join pgmq.%I q on q.msg_id = (l->>'msg_id')::bigint and q.read_ct = (l->>'read_ct')::int
    join pawl.entity_claims x on x.task_id = (q.message->>'task_id')::uuid and x.step = q.message->>'step'
      and x.index = coalesce((q.message->>'index')::int, 0) and x.attempt = (q.message->>'attempt')::int
    order by x.entity, x.entity_id for update skip locked $q$, 'q_' || queue) using leases
  loop
    perform pawl.close_entity_claim(c, false);
  end loop;
end $$;
