-- does: ends an entity claim: moves the user's row on (on_success) or back (revert_to). A row that somebody else has moved
--   meanwhile is left as it is. Returns moved, lost, or locked: somebody holds the row, or what a trigger of its table
--   needs, nothing was done. The version is compared only for the janitor (exact): a body may write the row it claimed in the
--   transaction that reports.
-- called by: end_reported_claims, end_entity_claims, revert_stale_claims, which have locked the claim.
-- locks: the user's row, nowait; what its triggers lock, for a moment.
-- raises: what the user's table raises.
create or replace function pawl.close_entity_claim(c pawl.entity_claims, success boolean, exact boolean default false)
returns text language plpgsql as $$
declare
  e pawl.entities;
  seen jsonb;
  into_state text := pawl.claim_of_step(c.task_id, c.step)->>'into'; -- null when the task is gone
  won boolean;
begin
  select * into e from pawl.entities x where x.entity = c.entity;
  begin
    seen := pawl.lock_entity(e, c.entity_id);
    won := coalesce(seen->>'state' = into_state, true)
      and ((into_state is not null and not exact) or (seen->>'version')::bigint = c.version)
      and pawl.move_entity(e, seen, case when success then c.on_success else c.revert_to end) is not null;
  exception when lock_not_available then
    return 'locked';
  end;
  delete from pawl.entity_claims x where x.entity = c.entity and x.entity_id = c.entity_id;
  if won then
    return 'moved';
  end if;
  insert into pawl.absorbed (queue, task_id, step, index, attempt, reason, message)
  values ('orchestration_step_results', c.task_id, c.step, c.index, c.attempt, 'claim_lost',
    jsonb_build_object('entity', c.entity, 'entity_id', c.entity_id, 'found', seen->>'state', 'version', c.version));
  return 'lost';
end $$;
