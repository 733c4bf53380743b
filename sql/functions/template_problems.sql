-- does: what is wrong with the shape of a template's definition, in order: unknown fields, missing ones, bad values. What
--   the parser of YAML refuses cannot come in through SQL either; schemas and claim rules are checked elsewhere.
-- called by: register_template.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.template_problems(definition jsonb) returns text[] language sql stable as $$
  with steps as materialized (
    select s.value as step, format('steps[%s]', s.ord - 1) as path, s.ord - 1 as no
    from jsonb_array_elements(case jsonb_typeof(definition->'steps') when 'array' then definition->'steps' else '[]' end)
      with ordinality s(value, ord)),
  needs as materialized (
    select n.value as need, format('%s.needs[%s]', s.path, n.ord - 1) as path, s.no
    from steps s cross join lateral jsonb_array_elements(
      case jsonb_typeof(s.step->'needs') when 'array' then s.step->'needs' else '[]' end) with ordinality n(value, ord)),
  places as materialized (
    select p.place, p.path, p.value, p.no from (
      select 'template' as place, '' as path, definition as value, -1 as no
      union all select 'identity', 'identity', definition->'identity', -1
      union all select 'step', s.path, s.step, s.no from steps s
      union all select 'retry', s.path || '.retry', s.step->'retry', s.no from steps s
      union all select 'need', n.path, n.need, n.no from needs n
      union all select 'claim', format('%s.claim.%s', s.path, left(c.key, 63)), c.value, s.no from steps s
        cross join lateral jsonb_each(case jsonb_typeof(s.step->'claim') when 'object' then s.step->'claim' else '{}' end) c) p
    where jsonb_typeof(p.value) = 'object'),
  checked as (
    select p.no, concat_ws('.', nullif(p.path, ''), f.field) as path, f.*, p.value->>f.field as words,
      coalesce(jsonb_typeof(p.value->f.field), 'null') as type
    from places p join pawl.template_fields() f on f.place = p.place),
  problems as (
    select p.no, format('unknown field %s', concat_ws('.', nullif(p.path, ''), left(k.field, 63))) as problem
    from places p cross join lateral jsonb_object_keys(p.value) k(field)
    where not exists (select from pawl.template_fields() f where f.place = p.place and f.field = k.field)
    union all
    select c.no, format('%s must be %s', c.path, c.wanted) from checked c
    where case when c.type = 'null' then c.required
      when c.kind <> 'any' and c.type <> case c.kind when 'list' then 'array' when 'yes' then 'boolean' when 'object' then 'object'
        when 'text' then 'string' when 'free' then 'string' else 'number' end then true
      when c.kind = 'text' then c.words !~ coalesce(c.rule, '')
      when c.kind = 'whole' and c.words !~ '^[0-9]{1,15}$' then true
      when c.kind in ('whole', 'fraction', 'free') then not (case c.kind when 'free' then octet_length(c.words) else c.words::numeric end
        between split_part(c.rule, ' ', 1)::numeric and split_part(c.rule, ' ', 2)::numeric)
      else false end
    union all
    select s.no, s.path || case when jsonb_typeof(s.step) <> 'object' then ' must be an object'
        else format('.no must be %s: steps are numbered in their order', s.no) end
    from steps s where s.step->'no' is distinct from to_jsonb(s.no)
    union all
    select n.no, n.path || ' must be the number of a step before, or {no, accepts_skipped}' from needs n
    where jsonb_typeof(n.need) not in ('number', 'object') or (jsonb_typeof(n.need) = 'number' and n.need::text !~ '^[0-9]{1,4}$')
    union all
    select max(n.no), format('steps[%s].needs names a step twice', n.no) from needs n
    group by n.no, coalesce(n.need->'no', n.need) having count(*) > 1
    union all
    select max(s.no), format('%s steps are named %s', count(*), left(s.step->>'name', 63)) from steps s
    group by s.step->>'name' having count(*) > 1
    union all
    select -1, 'result names no step' where definition->>'result' is not null
      and not exists (select from steps s where s.step->>'name' = definition->>'result')
    union all
    select -1, 'steps must have 1 to 10000 steps' where jsonb_typeof(definition->'steps') = 'array'
      and not jsonb_array_length(definition->'steps') between 1 and 10000
    union all
    select -1, format('stuck_after.%s must be milliseconds from 1, of an open state of a task', left(a.key, 63))
    from jsonb_each(case jsonb_typeof(definition->'stuck_after') when 'object' then definition->'stuck_after' else '{}' end) a
    where jsonb_typeof(a.value) <> 'number' or a.value::text !~ '^[1-9][0-9]{0,11}$' or not exists (
      select from unnest(enum_range(null::pawl.task_state)) t(state) where t.state::text = a.key and not pawl.is_final(t.state)))
  select array_agg(p.problem order by p.no, p.problem) from problems p
$$;
