-- does: ends the entity claims of steps whose workers report, in the transaction that reports: with CompleteTx the user's
--   writes and the move are one. Success moves on, failure and rejection move back, also when the step was cancelled
--   meanwhile: the body's word counts for the row. A complete result whose row somebody else has moved becomes a failed
--   one of type claim_lost. A row that somebody holds is left to end_entity_claims; no janitor takes it
--   until then, unless the result becomes a dead letter.
-- called by: report_steps, for messages of steps with claims.
-- locks: the claims, then the users' rows (nowait).
-- raises: what the users' tables raise.
create or replace function pawl.end_reported_claims(results pawl.step_result[]) returns pawl.step_result[]
language plpgsql as $$
declare
  c pawl.entity_claims;
  place int;
  verdict text;
begin
  for c in
    select x.* from pawl.entity_claims x join unnest(results) r
      on r.task_id = x.task_id and r.step = x.step and r.index = x.index and r.attempt = x.attempt
    order by x.entity, x.entity_id for update of x
  loop
    place := (select u.ord from unnest(results) with ordinality u(task_id, step, index, attempt, status, result, error, worker, msg_id, ord)
      where u.task_id = c.task_id and u.step = c.step and u.index = c.index and u.attempt = c.attempt limit 1);
    verdict := pawl.close_entity_claim(c, results[place].status = 'complete');
    if verdict = 'locked' then
      update pawl.entity_claims x set lease_until = 'infinity' where x.entity = c.entity and x.entity_id = c.entity_id;
    elsif verdict = 'lost' and results[place].status = 'complete' then
      results[place].status := 'failed';
      results[place].result := null;
      results[place].error := jsonb_build_object('type', 'claim_lost', 'retryable', false, 'message',
        format('somebody else moved the %s while the step held it', c.entity));
    end if;
  end loop;
  return results;
end $$;
