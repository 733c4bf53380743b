-- does: keeps the janitors away from entity claims whose bodies still act: their leases move with the leases of the steps,
--   also when the claim was revoked.
-- called by: extend_leases, when there are claims.
-- locks: claims, skip locked.
-- raises: nothing.
create or replace function pawl.extend_claims(queue text, leases jsonb, lease_ms bigint) returns void language plpgsql as $$
begin
  execute format($q$
    update pawl.entity_claims c set lease_until = pawl.now() + $2 * interval '1 ms'
    where c.lease_until < 'infinity' and (c.entity, c.entity_id) in (
      select x.entity, x.entity_id from jsonb_array_elements($1) l
      join pgmq.%I q on q.msg_id = (l->>'msg_id')::bigint and q.read_ct = (l->>'read_ct')::int
      join pawl.entity_claims x on x.task_id = (q.message->>'task_id')::uuid and x.step = q.message->>'step'
        and x.index = coalesce((q.message->>'index')::int, 0) and x.attempt = (q.message->>'attempt')::int
      for update of x skip locked) $q$, 'q_' || queue) using leases, lease_ms;
end $$;
