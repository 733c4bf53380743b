-- does: a module's janitor: reverts claims that are older than their entity's limit and whose lease is over, if the row is
--   exactly as it was claimed, and ends their attempts in the same transaction: a late result is absorbed. Then on_crash:
--   retry runs the step again, hold leaves it waiting for a person. A row that was touched is left to a person too. What
--   somebody holds, or a trigger refuses to move, is left for the next round. One call takes 500 at most, any of them: those that
--   raise keep nobody from their turn. Returns {reverted, lost, left, raised}: raised is {entity, entity_id, sqlstate, message} of
--   one, null when none did.
-- called by: a janitor of the module, every 2 minutes.
-- locks: tasks by id, their steps, claims, all skip locked; the users' rows, nowait.
-- raises: what says nothing about one row: deadlocks, timeouts, a lack of resources.
create or replace function pawl.revert_stale_claims(module text, processor text default null) returns jsonb
language plpgsql set jit = off as $$
declare
  at timestamptz := pawl.now();
  counts jsonb := '{"reverted": 0, "lost": 0, "left": 0}';
  one record;
  c pawl.entity_claims;
  verdict text;
  raised jsonb;
begin
  perform set_config('pawl.processor', coalesce(processor, ''), true), set_config('pawl.actor', '', true), set_config('pawl.reason', '', true);
  for one in
    select o.* from (
      select x.entity, x.entity_id, x.task_id, x.step, x.index, e.claim_limit from pawl.entity_claims x
      join pawl.entities e on e.entity = x.entity and e.module = revert_stale_claims.module
      where x.claimed_at < at - e.claim_limit and x.lease_until < at order by random() limit 500) o
    order by o.task_id, o.step, o.index
  loop
    verdict := 'left';
    begin
      perform from pawl.tasks t where t.task_id = one.task_id for no key update skip locked;
      if found or not exists (select from pawl.tasks t where t.task_id = one.task_id) then
        perform from pawl.steps s where s.task_id = one.task_id and s.step = one.step and s.index = one.index
          for no key update skip locked;
        if found or not exists (select from pawl.steps s where s.task_id = one.task_id and s.step = one.step and s.index = one.index) then
          select * into c from pawl.entity_claims x where x.entity = one.entity and x.entity_id = one.entity_id
            and x.claimed_at < at - one.claim_limit and x.lease_until < at for update skip locked;
          if found and (c.task_id, c.step, c.index) = (one.task_id, one.step, one.index) then
            verdict := case pawl.close_entity_claim(c, false, true) when 'moved' then 'reverted' when 'lost' then 'lost' else 'left' end;
          end if;
        end if;
      end if;
      if verdict <> 'left' then
        perform pawl.end_crashed_claim(c, verdict = 'lost');
      end if;
    exception when others then
      if pawl.concerns_all(sqlstate) then
        raise;
      end if;
      verdict := 'left';
      raised := jsonb_build_object('entity', one.entity, 'entity_id', one.entity_id, 'sqlstate', sqlstate, 'message', sqlerrm);
    end;
    counts := jsonb_set(counts, array[verdict], to_jsonb((counts->>verdict)::int + 1));
  end loop;
  return counts || jsonb_build_object('raised', raised);
end $$;
