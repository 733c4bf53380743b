-- does: gives pawl_operator and pawl_orchestrator their rights on PGMQ's tables: the queues of steps, and those that replies go to.
--   What belongs to somebody else is left to its owner: one queue of another application would else stop every migration.
-- called by: install_roles.
-- locks: catalog rows.
-- raises: nothing.
create or replace function pawl.grant_pgmq() returns void language plpgsql as $$
declare
  place record;
begin
  for place in
    select c.oid::regclass as name, c.relkind = 'S' as sequence from pg_class c
    where c.relnamespace = 'pgmq'::regnamespace and c.relkind in ('r', 'p', 'v', 'S') and pg_has_role(c.relowner, 'usage')
  loop
    if place.sequence then
      execute format('grant select on sequence %s to pawl_operator', place.name);
      execute format('grant usage, select, update on sequence %s to pawl_orchestrator', place.name);
    else
      execute format('grant select on %s to pawl_operator', place.name);
      execute format('grant select, insert, update, delete on %s to pawl_orchestrator', place.name);
    end if;
  end loop;
end $$;
