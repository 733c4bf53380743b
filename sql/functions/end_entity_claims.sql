-- does: the entity claims of steps whose attempts have ended otherwise than by a report: a result that a worker put on the
--   queue itself, or whose row was held when it was reported, moves the row now; what the engine ended while a body may
--   still be acting (timeout, crash) only marks the claim as revoked, for its report or its janitor. So does a timeout
--   after the report: the result that waits in its queue moves the row. Returns the tasks it
--   touched: none.
-- called by: close_attempts. With roles installed it runs with the rights of the owner, as reports do.
-- locks: the claims, then the users' rows (nowait).
-- raises: 55P03 when somebody still holds the row: the result comes back.
create or replace function pawl.end_entity_claims(results pawl.step_result[]) returns uuid[]
language plpgsql set jit = off as $$
declare
  c pawl.entity_claims;
  r record;
begin
  for r in select u.* from unnest(results) u join pawl.entity_claims x
      on u.task_id = x.task_id and u.step = x.step and u.index = x.index and u.attempt = x.attempt
    order by x.entity, x.entity_id
  loop
    select * into c from pawl.entity_claims x
    where x.task_id = r.task_id and x.step = r.step and x.index = r.index and x.attempt = r.attempt for update;
    continue when not found;
    if r.status = 'failed' and r.error->>'type' in ('timeout', 'crash', 'dead_letter') and (c.lease_until < 'infinity' or r.msg_id is null) then
      update pawl.entity_claims x set revoked_at = coalesce(x.revoked_at, pawl.now())
      where x.entity = c.entity and x.entity_id = c.entity_id;
    elsif pawl.close_entity_claim(c, r.status = 'complete') = 'locked' then
      raise exception 'somebody holds the % that step % of task % has claimed', c.entity, c.step, c.task_id
        using errcode = 'lock_not_available', hint = 'The result is applied as soon as that transaction ends.';
    end if;
  end loop;
  return '{}';
end $$;
