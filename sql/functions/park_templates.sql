-- does: parks the templates that claim_coverage names: their requests wait until unpark_templates finds them covered. What
--   runs goes on. Returns the templates' names.
-- called by: orchestrators that were started with --park, operators.
-- locks: the templates' rows.
-- raises: PW023.
create or replace function pawl.park_templates(actor text, reason text) returns jsonb language plpgsql set jit = off as $$
declare
  parked jsonb;
begin
  perform pawl.begin_operation(actor, reason);
  with missing as (select c.template_id, min(c.problem || ' (' || coalesce(c.module, c.entity) || ', state ' || c.state || ')') as problem
    from pawl.claim_coverage() c group by c.template_id),
  moved as (
    update pawl.templates t set parked_reason = 'entity claims: ' || m.problem
    from missing m where t.template_id = m.template_id and t.parked_reason is null
    returning t.namespace || '/' || t.name || '@' || t.version as name)
  select coalesce(jsonb_agg(m.name order by m.name), '[]') into parked from moved m;
  perform pawl.end_operation('park_templates', '{}', jsonb_build_object('parked', parked));
  return parked;
end $$;
