-- does: sets templates free that were parked because of their entity claims and are covered now. Returns their names.
-- called by: beat_janitor, operators.
-- locks: the templates' rows.
-- raises: nothing.
create or replace function pawl.unpark_templates() returns jsonb language sql as $$
  with moved as (
    update pawl.templates t set parked_reason = null
    where t.parked_reason like 'entity claims: %' and not exists (select from pawl.claim_coverage() c where c.template_id = t.template_id)
    returning t.namespace || '/' || t.name || '@' || t.version as name)
  select coalesce(jsonb_agg(m.name order by m.name), '[]') from moved m
$$;
