-- does: takes back what grant_queue gave; the role stays a member of pawl_worker, which alone can do nothing.
-- called by: owners, operators.
-- locks: catalog rows.
-- raises: 42P01 for an unknown queue, 42704 for an unknown role.
create or replace function pawl.revoke_queue(role text, queue text) returns void language plpgsql set jit = off as $$
begin
  execute format('revoke usage on sequence pawl_queues.%I from %I', 'announced_' || queue, role);
end $$;
