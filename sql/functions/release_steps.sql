-- does: hands messages back at once, for a worker that stops: visible again now, the delivery stays counted;
--   entity claims are moved back, since nobody acts any more. leases: [{msg_id, read_ct}]. Returns [{msg_id, released}].
-- called by: workers on SIGTERM.
-- locks: its messages by id, then what release_claims locks: a report takes them in this order.
-- raises: PW010 for an unknown queue, PW024 for bad leases.
create or replace function pawl.release_steps(queue text, leases jsonb, worker text default null) returns json
language plpgsql set jit = off as $$
declare
  answer json;
begin
  perform pawl.check_step_queue(queue);
  perform pawl.check_leases(leases);
  execute format($q$
    with asked as (select (l->>'msg_id')::bigint as msg_id, (l->>'read_ct')::int as read_ct from jsonb_array_elements($1) l),
    freed as (select f.msg_id from pawl_queues.%I(array(select msg_id from asked order by msg_id),
      array(select read_ct from asked order by msg_id), 0) f)
    select json_agg(json_build_object('msg_id', a.msg_id, 'released', f.msg_id is not null))
    from asked a left join freed f using (msg_id) $q$, 'touch_' || queue)
  into answer using leases;
  if exists (select from pawl.entity_claims) then
    perform pawl.release_claims(queue, leases);
  end if;
  if answer::jsonb @> '[{"released": true}]' and (select s.announce from pawl.engine_settings s) then
    perform pg_notify('pgmq.q_' || queue || '.INSERT', '');
  end if;
  return coalesce(answer, '[]');
end $$;
