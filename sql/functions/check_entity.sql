-- does: checks what an operator says about an entity against the table itself. Returns the row to keep. A table whose name has
--   no schema is looked for in the search path, then in public: with roles installed the path is Postgres' own. Who
--   asks (asking_role) must be able to update the table.
-- called by: register_entity.
-- locks: nothing.
-- raises: PW030 naming what does not fit.
create or replace function pawl.check_entity(entity text, settings jsonb) returns pawl.entities language plpgsql as $$
declare
  place regclass;
  columns text[] := array[settings->>'key', settings->>'status', settings->>'version'];
  states text[] := array(select jsonb_array_elements_text(
    case jsonb_typeof(settings->'states') when 'array' then settings->'states' else '[]' end));
  odd text := (select string_agg(k, ', ' order by k) from jsonb_object_keys(
    case jsonb_typeof(settings) when 'object' then settings else '{}' end) k
    where k not in ('table', 'key', 'status', 'version', 'states', 'module', 'claim_limit'));
  asker text := pawl.asking_role();
  claim_limit interval;
  used text;
  problem text;
begin
  begin
    place := coalesce(to_regclass(settings->>'table'),
      case when strpos(settings->>'table', '.') = 0 then to_regclass('public.' || (settings->>'table')) end);
  exception when syntax_error or invalid_name or feature_not_supported then
    null; -- no name of a table: said below
  end;
  begin
    claim_limit := coalesce((settings->>'claim_limit')::interval, interval '5 minutes');
  exception when data_exception then
    null; -- no interval: said below
  end;
  select string_agg(distinct u.state, ', ') into used
  from pawl.templates t, jsonb_path_query(t.definition, '$.steps[*].claim.* ? (@.entity == $e)',
    jsonb_build_object('e', entity)) c, lateral (values (c->>'from'), (c->>'into'), (c->>'revert_to'), (c->>'on_success')) u(state)
  where u.state <> all (states);
  problem := case
    when coalesce(entity, '') !~ '^[a-z][a-z0-9_]{0,62}$' then 'its name has up to 63 lower-case letters, digits and underscores'
    when jsonb_typeof(settings) is distinct from 'object' then 'its settings must be an object'
    when odd is not null then 'unknown setting ' || odd
    when place is null then format('there is no table %s', coalesce(settings->>'table', '(table is missing)'))
    when exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.oid = place and (c.relkind not in ('r', 'p')
      or c.relpersistence = 't' or n.nspname in ('pawl', 'pawl_queues', 'pgmq', 'pg_catalog', 'information_schema'))) then format('%s is not a table of yours', place)
    when not (has_table_privilege(asker, place, 'select') and has_table_privilege(asker, place, 'update')) then format('you may not update %s yourself', place)
    when not has_table_privilege((select n.nspowner from pg_namespace n where n.nspname = 'pawl'), place, 'update')
      then format('the owner of schema pawl may not update %s', place)
    when (select count(*) from pg_attribute a where a.attrelid = place and a.attnum > 0 and not a.attisdropped
      and a.attname = any (columns)) <> 3 then format('key, status and version must name three columns of %s', place)
    when not exists (select from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
      where i.indrelid = place and i.indisunique and i.indnkeyatts = 1 and i.indpred is null and a.attname = settings->>'key')
      then format('column %s of %s is not unique', settings->>'key', place)
    when not exists (select from pg_attribute a where a.attrelid = place and a.attname = settings->>'version'
      and a.atttypid in ('int'::regtype, 'bigint'::regtype) and a.attnotnull)
      then format('column %s of %s must be int or bigint, not null', settings->>'version', place)
    when cardinality(states) = 0 or jsonb_path_exists(settings->'states', 'strict $[*] ? (@.type() != "string")')
      then 'states must list the states of the status column, each a text'
    when pawl.unfit_state(place, settings->>'status', states) is not null
      then format('state %s does not fit column %s of %s', pawl.unfit_state(place, settings->>'status', states), settings->>'status', place)
    when used is not null then format('applied templates use its states %s', used)
    when coalesce(settings->>'module', '') = '' then 'module must name who answers for it'
    -- From Postgres 17 on it may be infinite, and no janitor would take a claim.
    when (claim_limit > interval '0' and claim_limit <= interval '10 years') is not true then 'claim_limit must be positive, 10 years at most' end;
  if problem is not null then
    raise exception 'entity %: %', quote_nullable(left(entity, 80)), problem using errcode = 'PW030',
      hint = 'settings: {table, key, status, version, states: [...], module, claim_limit: "5 minutes"}';
  end if;
  return (entity, (select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.oid = place), settings->>'key', settings->>'status', settings->>'version', states, settings->>'module',
    claim_limit, now())::pawl.entities;
end $$;
