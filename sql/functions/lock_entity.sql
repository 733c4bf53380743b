-- does: locks one row of a registered table without waiting. Returns {id, state, version} as the database writes them,
--   null when there is no such row. Only registered tables are touched, and every identifier is quoted.
-- called by: begin_claimed_delivery, close_entity_claim. Search path: the triggers of the user's table may need it.
-- locks: the user's row, nowait.
-- raises: 55P03 when somebody else holds the row.
create or replace function pawl.lock_entity(e pawl.entities, id text) returns jsonb
language plpgsql set search_path = public, pg_temp as $$
declare
  kind text := (select format_type(a.atttypid, a.atttypmod) from pg_attribute a
    where a.attrelid = e.table_name::regclass and a.attname = e.key_column and not a.attisdropped);
  found_row jsonb;
begin
  begin
    execute format('select jsonb_build_object(''id'', %1$I::text, ''state'', %2$I::text, ''version'', %3$I)
        from %4$s where %1$I = $1::%5$s for no key update nowait',
      e.key_column, e.status_column, e.version_column, e.table_name::regclass, kind) into found_row using id;
  exception when invalid_text_representation or numeric_value_out_of_range or datetime_field_overflow then
    return null; -- not a value that the key could have
  end;
  return found_row;
end $$;
