-- does: moves a row that lock_entity has locked into another state; the version counts on. Compares once more, so that it
--   stays a compare-and-swap even when a trigger of the user's moved the row. Returns the new version, null when lost.
--   The search path is widened for the update alone, whose triggers may need it; the update itself names every operator in full.
--   Whatever these triggers wait for costs a tenth of a second at most, and less in a long statement (shorten_waits).
-- called by: begin_claimed_delivery, close_entity_claim.
-- locks: nothing more of its own; what the user's triggers and foreign keys lock, for a moment.
-- raises: 55P03 when somebody holds what a trigger needs; what the user's table raises.
create or replace function pawl.move_entity(e pawl.entities, seen jsonb, next text) returns bigint
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $$
declare
  place regclass := e.table_name::regclass;
  id text := seen->>'id';
  state text := seen->>'state';
  version bigint := seen->>'version';
  change text := format('update %1$s set %2$I = $2::%4$s, %3$I = %3$I operator(pg_catalog.+) 1
      where %5$s and %2$I::text operator(pg_catalog.=) $3 and %3$I operator(pg_catalog.=) $4 returning %3$I::bigint',
    place, e.status_column, e.version_column, (select pawl.plain_type(a.atttypid) from pg_attribute a
      where a.attrelid = place and a.attname = e.status_column and not a.attisdropped), pawl.entity_key(e));
  moved bigint;
begin
  perform pawl.shorten_waits();
  perform set_config('search_path', 'public, pg_temp', true);
  execute change into moved using id, next, state, version;
  return moved;
end $$;
