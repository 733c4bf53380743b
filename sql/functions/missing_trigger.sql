-- does: the statement that makes a table's trigger; null when it is there, enabled and exactly this one. Making it waits for everybody
--   who writes to the table, and makes them wait: at an upgrade of a running system, for nothing. definition is in the words of
--   pg_get_triggerdef, spaces and capitals aside.
-- called by: missing_announcer, sql/triggers.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.missing_trigger(place regclass, definition text) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select regexp_replace(definition, '^create', 'create or replace') where not exists (
    select from pg_trigger g where g.tgrelid = place and g.tgenabled in ('O', 'A')
      and lower(pg_get_triggerdef(g.oid)) = lower(regexp_replace(definition, '[[:space:]]+', ' ', 'g')))
$$;
