-- does: what the end of attempts means beyond their steps: concurrency slots, step keys, entity claims. queues and
--   templates are those of the steps, when the caller knows them: what none of them uses is not looked for. Returns the
--   tasks to settle.
-- called by: settle_step_results, unless nothing of the kind exists.
-- locks: as the functions it calls, in the engine's order: slots, identities, entities.
-- raises: nothing of its own.
create or replace function pawl.close_attempts(results pawl.step_result[], queues text[], templates int[])
returns uuid[] language plpgsql as $$
declare
  touched uuid[] := '{}';
begin
  if exists (select from pawl.held_steps h where h.released_at is not null and (queues is null or h.queue = any (queues))) then
    perform pawl.free_slots(results);
  end if;
  if templates is null or exists (select from pawl.templates t where t.template_id = any (templates) and t.has_special_steps) then
    touched := touched || pawl.end_step_keys(results);
  end if;
  if templates is null or exists (select from pawl.template_steps s where s.template_id = any (templates) and s.claim is not null) then
    touched := touched || pawl.end_entity_claims(results);
  end if;
  return touched;
end $$;
