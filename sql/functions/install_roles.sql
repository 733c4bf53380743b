-- does: makes the four roles of the project, without login, and gives each the least it needs in this database. Grant them
--   to your own: pawl_producer sends requests, pawl_worker claims and reports on the queues it was granted (grant_queue),
--   pawl_operator reads everything and calls the operator functions, pawl_orchestrator runs the engine. What
--   they call runs with the owner's rights from then on, and so does the orchestrator's end of a claim on the user's row. May be repeated.
-- called by: an owner, once; refresh_roles after every write of functions.
-- locks: catalog rows.
-- raises: 42501 when the caller may not create roles.
create or replace function pawl.install_roles() returns void language plpgsql as $$
declare
  role text;
  f record;
  place record;
begin
  foreach role in array array['pawl_producer', 'pawl_worker', 'pawl_operator', 'pawl_orchestrator'] loop
    begin
      if not exists (select from pg_roles r where r.rolname = role) then
        execute format('create role %I nologin', role);
      end if;
    exception when duplicate_object or unique_violation then
      null; -- another database's installation was quicker: roles belong to the server
    end;
  end loop;
  revoke execute on all functions in schema pawl, pawl_queues from public;
  grant usage on schema pgmq to pawl_producer, pawl_orchestrator;
  revoke insert on pgmq.q_orchestration_task_requests from pawl_producer; -- given once: with it one may choose a message's id
  grant insert (vt, message, headers), select (msg_id) on pgmq.q_orchestration_task_requests to pawl_producer;
  grant usage on schema pawl to pawl_producer, pawl_worker, pawl_operator, pawl_orchestrator;
  for f in select * from pawl.role_functions() loop
    execute format('alter function %s security definer', f.signature);
    execute format('alter function %s set search_path = pg_catalog, pg_temp', f.signature);
    execute format('grant execute on function %s to %I', f.signature, f.role);
  end loop;
  -- An operator sees everything, messages too, and calls what only computes.
  for f in select p.oid::regprocedure as signature from pg_proc p where p.pronamespace = 'pawl'::regnamespace
    and p.prorettype <> 'trigger'::regtype and (p.provolatile <> 'v' or p.proname = 'now') loop
    execute format('grant execute on function %s to pawl_operator', f.signature);
  end loop;
  grant usage on schema pgmq to pawl_operator;
  grant select on all tables in schema pawl to pawl_operator;
  -- The queues of steps, and those that replies go to. A queue of somebody else is left to its owner: it would stop every migration.
  for place in select c.oid::regclass as name, c.relkind = 'S' as sequence from pg_class c
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
  alter default privileges in schema pgmq grant select on sequences to pawl_operator;
  alter default privileges in schema pawl grant select on tables to pawl_operator;
  alter default privileges in schema pgmq grant select on tables to pawl_operator;

  grant usage on schema pawl_queues to pawl_orchestrator;
  grant select, insert, update, delete on all tables in schema pawl to pawl_orchestrator;
  grant usage, select, update on all sequences in schema pawl, pawl_queues to pawl_orchestrator;
  grant execute on all functions in schema pawl, pawl_queues to pawl_orchestrator;
  revoke execute on function pawl.install_roles(), pawl.refresh_roles() from pawl_orchestrator;
  alter default privileges in schema pgmq grant select, insert, update, delete on tables to pawl_orchestrator;
  alter default privileges in schema pgmq grant usage, select, update on sequences to pawl_orchestrator;
  alter default privileges in schema pawl grant select, insert, update, delete on tables to pawl_orchestrator;
  alter default privileges in schema pawl_queues grant usage, select, update on sequences to pawl_orchestrator;
  alter default privileges in schema pawl_queues grant execute on functions to pawl_orchestrator;
end $$;
