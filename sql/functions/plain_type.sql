-- does: the name of a type as a cast wants it, without a length: of a domain, the type beneath. A cast to a length cuts.
-- called by: entity_key, move_entity.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.plain_type(kind oid) returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
  with recursive beneath(oid, base) as (
    select t.oid, t.typbasetype from pg_type t where t.oid = kind
    union all select t.oid, t.typbasetype from beneath b join pg_type t on t.oid = b.base)
  select format_type(b.oid, -1) from beneath b where b.base = 0
$$;
