-- does: the condition that finds one row of a registered table by its key, which is $1, a text. Its operator is that of the key's
--   unique index, by its full name: what equals means is not for the search path to say. Its type is without a length, else
--   Postgres cuts a longer key and finds another row.
-- called by: lock_entity, move_entity.
-- locks: nothing.
-- raises: 42P01 when the table is gone.
create or replace function pawl.entity_key(e pawl.entities) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  select format('%I operator(%s) $1::%s', e.key_column, coalesce((
      select format('%I.%s', n.nspname, o.oprname)
      from pg_index i join pg_opclass c on c.oid = i.indclass[0]
      join pg_amop m on m.amopfamily = c.opcfamily and m.amoplefttype = c.opcintype and m.amoprighttype = c.opcintype and m.amopstrategy = 3
      join pg_operator o on o.oid = m.amopopr join pg_namespace n on n.oid = o.oprnamespace
      where i.indrelid = a.attrelid and i.indkey[0] = a.attnum and i.indisunique and i.indnkeyatts = 1 and i.indpred is null
      order by i.indexrelid limit 1), 'pg_catalog.='), pawl.plain_type(a.atttypid))
  from pg_attribute a where a.attrelid = e.table_name::regclass and a.attname = e.key_column and not a.attisdropped
$$;
