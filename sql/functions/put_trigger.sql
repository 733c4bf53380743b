-- does: makes a table's trigger unless it is there and exactly this one. Making it waits for everybody who writes to the table,
--   and makes them wait: at an upgrade of a running system, for nothing. definition is in the words of pg_get_triggerdef, spaces
--   and capitals aside.
-- called by: install_queue, sql/triggers.
-- locks: the table, when the trigger is missing, disabled or another.
-- raises: nothing of its own.
create or replace function pawl.put_trigger(place regclass, definition text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
  definition := regexp_replace(definition, '\s+', ' ', 'g');
  if not exists (select from pg_trigger g where g.tgrelid = place and g.tgenabled in ('O', 'A')
    and lower(pg_get_triggerdef(g.oid)) = lower(definition)) then
    execute regexp_replace(definition, '^create', 'create or replace');
  end if;
end $$;
