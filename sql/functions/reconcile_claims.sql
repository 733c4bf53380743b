-- does: gives entity claims whose results have disappeared to the janitor of their module. A report that finds the user's row held
--   leaves the claim without an end of its lease, to the result that waits in its queue; when that is gone although the claim
--   is there (somebody purged the queue), nobody else would end it. Claim and result are committed, and end, together: a result
--   that is missing after the claim was seen does not come any more. Returns how many.
-- called by: reconcile, once a pass.
-- locks: claims, skip locked.
-- raises: nothing.
create or replace function pawl.reconcile_claims() returns int language plpgsql as $$
declare
  at timestamptz := pawl.now();
  waiting pawl.entity_claims[] := array(select c from pawl.entity_claims c where c.lease_until = 'infinity'
    order by random() limit 1000);
  flight uuid[];
  released int;
begin
  if cardinality(waiting) = 0 then
    return 0;
  end if;
  flight := pawl.results_on_their_way(array(select w.task_id from unnest(waiting) w), 9223372036854775807);
  with left_alone as (
    select c.entity, c.entity_id from pawl.entity_claims c join unnest(waiting) w on w.entity = c.entity and w.entity_id = c.entity_id
      and w.task_id = c.task_id and w.step = c.step and w.index = c.index and w.attempt = c.attempt
    where c.lease_until = 'infinity' and not c.task_id = any (flight) for update of c skip locked),
  freed as (
    update pawl.entity_claims c set lease_until = at from left_alone l where c.entity = l.entity and c.entity_id = l.entity_id
    returning c.task_id, c.step, c.index, c.attempt),
  noted as (
    insert into pawl.repairs (kind, cause, task_id, step, index, attempt, at)
    select 'lost_result', 'foreign', f.task_id, f.step, f.index, f.attempt, at from freed f returning 1)
  select count(*) into released from noted;
  return released;
end $$;
