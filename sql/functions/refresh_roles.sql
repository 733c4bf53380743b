-- does: gives the roles their rights again where they are installed: writing functions anew has undone a part.
-- called by: sql/triggers/roles.sql.
-- locks: catalog rows.
-- raises: nothing.
create or replace function pawl.refresh_roles() returns void language plpgsql as $$
begin
  if exists (select from pg_namespace n, aclexplode(n.nspacl) a join pg_roles r on r.oid = a.grantee
    where n.nspname = 'pawl' and r.rolname = 'pawl_worker') then
    perform pawl.install_roles();
  end if;
end $$;
