-- does: refuses to touch steps whose bodies run under an entity claim.
-- called by: retry_task, locked_step.
-- locks: nothing.
-- raises: PW021.
create or replace function pawl.refuse_claimed(refs pawl.step_ref[]) returns void language plpgsql as $$
declare
  busy pawl.entity_claims;
begin
  select c.* into busy from unnest(refs) r
  join pawl.entity_claims c on c.task_id = r.task_id and c.step = r.step and c.index = r.index limit 1;
  if found then
    raise exception 'step % of task % holds a claim on % %', busy.step, busy.task_id, busy.entity, busy.entity_id
      using errcode = 'PW021', hint = 'Wait until it reports, or until the janitor of the entity''s module ends it.';
  end if;
end $$;
