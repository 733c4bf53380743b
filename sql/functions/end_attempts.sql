-- does: what the end of attempts means beyond their steps: concurrency slots, step keys, entity claims. Returns the tasks
--   to settle.
-- called by: settle_results, unless nothing of the kind exists.
-- locks: as the functions it calls, in the engine's order: slots, identities, entities.
-- raises: nothing of its own.
create or replace function pawl.end_attempts(results pawl.step_result[]) returns uuid[] language plpgsql as $$
declare
  touched uuid[] := '{}';
begin
  if exists (select from pawl.held_steps h where h.released_at is not null) then
    perform pawl.free_slots(results);
  end if;
  if exists (select from pawl.step_identities) then
    touched := touched || pawl.end_step_keys(results);
  end if;
  if exists (select from pawl.entity_claims) then
    touched := touched || pawl.end_entity_claims(results);
  end if;
  return touched;
end $$;
