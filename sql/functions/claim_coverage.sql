-- does: names the claim states of applied templates that nobody would release after a crash: the entity is not registered,
--   lacks the state, or its module has no janitor. Empty when all is covered.
-- called by: orchestrators at start, park_templates, unpark_templates.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.claim_coverage()
returns table (template_id int, template text, step text, entity text, state text, module text, problem text) language sql stable as $$
  select distinct t.template_id, t.namespace || '/' || t.name || '@' || t.version, c.step, c.claim->>'entity', c.claim->>'into', e.module,
    case when e.entity is null then 'entity is not registered'
      when not array[c.claim->>'from', c.claim->>'into', c.claim->>'revert_to', c.claim->>'on_success'] <@ e.states
        then 'entity lacks a state'
      else 'module has no janitor' end
  from pawl.templates t
  cross join lateral pawl.template_claims(t.definition) c
  left join pawl.entities e on e.entity = c.claim->>'entity'
  where t.definition @? '$.steps[*].claim.*'
    and (e.entity is null or not exists (select from pawl.janitors j where j.module = e.module)
      or not array[c.claim->>'from', c.claim->>'into', c.claim->>'revert_to', c.claim->>'on_success'] <@ e.states)
$$;
