-- does: the entity claims that a template's definition declares, one row for each step and requester.
-- called by: check_template_claims, claim_coverage.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.template_claims(definition jsonb)
returns table (step text, requester text, claim jsonb) language sql immutable as $$
  select s->>'name', c.key, c.value
  from jsonb_array_elements(definition->'steps') s
  cross join lateral jsonb_each(case jsonb_typeof(s->'claim') when 'object' then s->'claim' else '{}' end) c
  where c.value <> '"none"'
$$;
