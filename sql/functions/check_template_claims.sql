-- does: holds a new template's entity claims against the six rules, and refuses a claim state that no janitor answers for.
--   What is claimed must be released by somebody even after a crash.
-- called by: trigger on pawl.templates (sql/triggers/templates.sql), for templates with a claim.
-- locks: an advisory lock: rule 6 looks at all templates, and no entity changes meanwhile.
-- raises: PW021 outside of read committed, PW032 naming the rule, the step and the requester.
create or replace function pawl.check_template_claims() returns trigger language plpgsql as $$
declare
  c record;
  e pawl.entities;
  other record;
  problem text;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform pawl.refuse_command('a template with entity claims needs read committed',
      'Within another isolation level it would be checked against what was, not against what is.');
  end if;
  perform pg_advisory_xact_lock(hashtext('pawl.check_template_claims'));
  for c in select x.*, x.claim->>'from' as from_state, x.claim->>'into' as into_state, x.claim->>'revert_to' as revert_to,
      x.claim->>'on_success' as on_success, x.claim->>'entity' as entity
    from pawl.template_claims(new.definition) x order by x.step, x.requester
  loop
    select * into e from pawl.entities n where n.entity = c.entity;
    select t.namespace || '/' || t.name || '@' || t.version as template, o.step, o.claim->>'revert_to' as revert_to into other
    from (select n.namespace, n.name, n.version, n.definition from pawl.templates n
        where n.definition @? '$.steps[*].claim.* ? (@.type() == "object")'
      union all select new.namespace, new.name, new.version, new.definition) t
    cross join lateral pawl.template_claims(t.definition) o
    where o.claim->>'entity' = c.entity and o.claim->>'into' = c.into_state and o.claim->>'revert_to' <> c.revert_to
    order by 1, 2 limit 1;
    problem := case
      when jsonb_typeof(c.claim) <> 'object' or exists (select from unnest(array['from', 'into', 'revert_to', 'on_success']) f
        where jsonb_typeof(c.claim->f) is distinct from 'string') then 'rule 1: from, into, revert_to and on_success must be text'
      when e.entity is null then format('entity %s is not registered: an operator does that with pawl.register_entity', quote_nullable(c.entity))
      when not array[c.from_state, c.into_state, c.revert_to, c.on_success] <@ e.states then format(
        'rule 2: %s is not a state of %s', (select min(s) from unnest(array[c.into_state, c.revert_to, c.from_state, c.on_success]) s
          where s <> all (e.states)), e.entity)
      when c.into_state = c.revert_to then format('rule 3: into and revert_to are both %s, a failure would release nothing', c.into_state)
      when c.into_state = c.from_state then format('rule 4: into and from are both %s, a second caller could claim as well', c.into_state)
      when c.into_state = c.on_success then format('rule 5: into and on_success are both %s, success would release nothing', c.into_state)
      when other.template is not null then format('rule 6: %s of %s reverts to %s here, but to %s in step %s of %s: a janitor could not tell which',
        c.into_state, e.entity, c.revert_to, other.revert_to, other.step, other.template)
      when not exists (select from pawl.janitors j where j.module = e.module) then format(
        'module %s has no janitor, which %s needs to be released after a crash: start one, or call pawl.beat_janitor', e.module, c.into_state) end;
    if problem is not null then
      raise exception 'template %/%, step %, claim %: %', new.namespace, new.name, c.step, c.requester, problem using errcode = 'PW032',
        hint = 'docs/claims.md has the rules, and what an entity needs.';
    end if;
  end loop;
  return new;
end $$;
