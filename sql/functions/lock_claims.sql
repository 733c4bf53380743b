-- does: locks the entity claims of locked tasks. Returns the tasks without those of which somebody holds a claim: a report,
--   perhaps in a transaction of the user's that stays open, or a janitor.
-- called by: fire_due, when there are claims: the clock waits for nobody.
-- locks: entity claims, skip locked.
-- raises: nothing.
create or replace function pawl.lock_claims(ids uuid[]) returns uuid[] language plpgsql as $$
declare
  locked pawl.entity_claims[];
begin
  locked := array(select c from pawl.entity_claims c where c.task_id = any (ids) for update skip locked);
  return array(select i from unnest(ids) i where not exists (select from pawl.entity_claims c where c.task_id = i
    and not exists (select from unnest(locked) l where l.entity = c.entity and l.entity_id = c.entity_id)) order by i);
end $$;
