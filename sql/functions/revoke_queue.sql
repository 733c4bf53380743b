-- does: takes back what grant_queue gave; the role stays a member of pawl_worker, which alone can do nothing.
-- called by: owners, operators.
-- locks: catalog rows.
-- raises: PW010 for an unknown queue, 42704 for an unknown role.
create or replace function pawl.revoke_queue(role text, queue text) returns void language plpgsql set jit = off as $$
begin
  perform pawl.check_known_queue(queue);
  if not exists (select from pg_roles r where r.rolname = role) then
    raise exception 'there is no role %', quote_nullable(left(role, 80)) using errcode = 'undefined_object', hint = 'Create it first.';
  end if;
  execute format('revoke usage on sequence pawl_queues.%I from %I', 'announced_' || queue, role);
end $$;
