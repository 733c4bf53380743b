-- does: moves a row that lock_entity has locked into another state; the version counts on. Compares once more, so that it
--   stays a compare-and-swap even when a trigger of the user's moved the row. Returns the new version, null when lost.
-- called by: begin_claimed_delivery, close_entity_claim. Search path: the triggers of the user's table may need it.
-- locks: nothing more.
-- raises: what the user's table raises.
create or replace function pawl.move_entity(e pawl.entities, seen jsonb, next text) returns bigint
language plpgsql set search_path = public, pg_temp as $$
declare
  key_kind text;
  state_kind text;
  moved bigint;
begin
  select max(format_type(a.atttypid, a.atttypmod)) filter (where a.attname = e.key_column),
    max(format_type(a.atttypid, a.atttypmod)) filter (where a.attname = e.status_column) into key_kind, state_kind
  from pg_attribute a where a.attrelid = e.table_name::regclass and not a.attisdropped;
  execute format('update %4$s set %2$I = $2::%6$s, %3$I = %3$I + 1
      where %1$I = $1::%5$s and %2$I = $3::%6$s and %3$I = $4 returning %3$I::bigint',
    e.key_column, e.status_column, e.version_column, e.table_name::regclass, key_kind, state_kind) into moved
  using seen->>'id', next, seen->>'state', (seen->>'version')::bigint;
  return moved;
end $$;
