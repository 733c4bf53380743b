-- does: locks one row of a registered table without waiting. Returns {id, state, version} as the database writes them,
--   null when there is no such row. Only registered tables are touched, every identifier is quoted, and nothing is looked up
--   in a schema where others may create. What a key's text means does not depend on the session: bytes are in hex, a date is read and written
--   in the ISO style (month before day), in UTC, so that who ends a claim finds the row of who began it.
-- called by: begin_claimed_delivery, close_entity_claim.
-- locks: the user's table and the row's partition as the update that follows does, nowait; the row, nowait. A partition that is
--   being altered is waited for a tenth of a second at most.
-- raises: 55P03 when somebody else holds the row, or a table that is being altered or indexed.
create or replace function pawl.lock_entity(e pawl.entities, id text) returns jsonb
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '100ms'
  set datestyle = 'ISO, MDY' set timezone = 'UTC' set intervalstyle = 'postgres' set extra_float_digits = 1 set bytea_output = 'hex' as $$
declare
  place regclass := e.table_name::regclass;
  part regclass;
  found_row jsonb;
begin
  perform pawl.shorten_waits();
  execute format('lock table only %s in row exclusive mode nowait', place);
  begin
    execute format('select jsonb_build_object(''id'', %I::text, ''state'', %I::text, ''version'', %I), tableoid::regclass
      from %s where %s for no key update nowait',
      e.key_column, e.status_column, e.version_column, place, pawl.entity_key(e)) into found_row, part using id;
  exception when data_exception then
    return null; -- not a value that the key could have
  end;
  if part <> place then
    execute format('lock table only %s in row exclusive mode nowait', part);
  end if;
  return found_row;
end $$;
