-- does: lets a role work on a queue: claim and report its steps, nothing else. The grant stands in the catalog, as usage of
--   the queue's sequence, and counts for the members of the role.
-- called by: owners, operators.
-- locks: catalog rows.
-- raises: PW010 for an unknown queue, 42704 for an unknown role.
create or replace function pawl.grant_queue(role text, queue text) returns void language plpgsql set jit = off as $$
begin
  perform pawl.check_known_queue(queue);
  if not exists (select from pg_roles r where r.rolname = role) then
    raise exception 'there is no role %', quote_nullable(left(role, 80)) using errcode = 'undefined_object', hint = 'Create it first.';
  end if;
  execute format('grant usage on sequence pawl_queues.%I to %I', 'announced_' || queue, role);
  if not pg_has_role(role, 'pawl_worker', 'usage') then
    execute format('grant pawl_worker to %I', role);
  end if;
end $$;
