-- does: a worker's heartbeat: moves the end of leases it still holds. leases: [{msg_id, read_ct}]. Returns [{msg_id,
--   status: extended|cancelled|lost}]: cancelled when the task or step was ended meanwhile, lost when the fence broke.
-- called by: workers, at a third of the lease.
-- locks: its messages by id, then claims, skip locked: a report takes them in this order.
-- raises: PW010 for an unknown queue, PW024 for bad leases or a bad span of time.
create or replace function pawl.extend_leases(queue text, leases jsonb, lease_ms bigint default 30000, worker text default null)
returns json language plpgsql set jit = off as $$
declare
  answer json;
begin
  perform pawl.check_step_queue(queue);
  perform pawl.check_leases(leases);
  perform pawl.check_lease(coalesce(lease_ms, 0));
  execute format($q$
    with asked as (select (l->>'msg_id')::bigint as msg_id, (l->>'read_ct')::int as read_ct from jsonb_array_elements($1) l),
    kept as (select k.* from pawl_queues.%I(array(select msg_id from asked order by msg_id),
      array(select read_ct from asked order by msg_id), $2) k)
    select json_agg(json_build_object('msg_id', a.msg_id, 'status', case when k.msg_id is null then 'lost'
      when s.state = 'in_progress' and s.attempt = (k.message->>'attempt')::int and not exists (
        select from pawl.entity_claims c where c.task_id = s.task_id and c.step = s.step and c.index = s.index and (
          c.revoked_at is not null or exists (select from pawl.tasks t where t.task_id = c.task_id and pawl.is_final(t.state))))
      then 'extended' else 'cancelled' end))
    from asked a left join kept k on k.msg_id = a.msg_id
    left join pawl.steps s on s.task_id = (k.message->>'task_id')::uuid and s.step = k.message->>'step'
      and s.index = coalesce((k.message->>'index')::int, 0) $q$, 'touch_' || queue)
  into answer using leases, lease_ms;
  if exists (select from pawl.entity_claims) then
    perform pawl.extend_claims(queue, leases, lease_ms);
  end if;
  return coalesce(answer, '[]');
end $$;
