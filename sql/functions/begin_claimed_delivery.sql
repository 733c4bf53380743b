-- does: begins the delivery of a step with an entity claim: moves the user's row from → into and the step into in_progress,
--   in one. Returns begun; open: an earlier delivery may still be acting, this one is not begun; failed: claim_failed, or the
--   task has ended, the body never runs; busy: somebody else's claim, tried again within a second; held: somebody holds the row, what a
--   trigger of its table needs, or the step for a moment, or changes the entity. A requester for whom the template names no claim begins like any other.
-- called by: begin_special_deliveries.
-- locks: the step (skip locked), the entity (nowait), so that it stays as it was read until the claim is committed, the user's
--   row (nowait).
-- raises: what the user's table raises.
create or replace function pawl.begin_claimed_delivery(queue text, d pawl.delivery, worker text) returns text
language plpgsql as $$
declare
  at timestamptz := pawl.now();
  s pawl.steps;
  claim jsonb;
  held pawl.entity_claims;
  e pawl.entities;
  seen jsonb;
  busy boolean;
  version bigint;
begin
  select * into s from pawl.steps x where x.task_id = (d.message->>'task_id')::uuid and x.step = d.message->>'step'
    and x.index = coalesce((d.message->>'index')::int, 0) and x.attempt = (d.message->>'attempt')::int
    and x.state in ('enqueued', 'in_progress') for no key update skip locked;
  if not found then
    perform pawl.put_off_delivery(queue, d, interval '600 ms');
    return 'held';
  end if;
  select * into held from pawl.entity_claims c where c.task_id = s.task_id and c.step = s.step and c.index = s.index;
  if found then
    perform pawl.put_off_delivery(queue, d, greatest(interval '1 s', least(held.lease_until, at + interval '1 hour') - at));
    return 'open';
  elsif exists (select from pawl.tasks t where t.task_id = s.task_id and pawl.is_final(t.state)) then
    return pawl.drop_ended_delivery(queue, d, s); -- cancelled while an earlier delivery acted, which was handed back
  elsif d.read_ct > coalesce((d.headers->>'max_deliveries')::int, 10) then
    execute format('select from pawl_queues.%I(array[$1], array[$2])', 'delete_' || queue) using d.msg_id, d.read_ct;
    perform pawl.send_crash_result(s, format('delivered %s times without a result', d.read_ct - 1));
    return 'failed';
  end if;

  claim := pawl.claim_of_step(s.task_id, s.step);
  if claim is not null then
    begin
      select * into e from pawl.entities x where x.entity = claim->>'entity' for key share nowait;
      seen := pawl.lock_entity(e, pawl.evaluate_expression(claim->>'id', (select t.input from pawl.tasks t where t.task_id = s.task_id)));
      busy := exists (select from pawl.entity_claims c where c.entity = e.entity and c.entity_id = seen->>'id');
      if not busy and seen->>'state' = claim->>'from' then
        version := pawl.move_entity(e, seen, claim->>'into');
      end if;
    exception when lock_not_available then
      perform pawl.put_off_delivery(queue, d, interval '600 ms');
      return 'held';
    end;
    if busy then
      if claim->>'on_busy' = 'wait' then
        perform pawl.put_off_delivery(queue, d, interval '600 ms');
        return 'busy';
      end if;
      return pawl.refuse_claim(queue, d, 'another operation is already in progress');
    elsif seen is null then
      return pawl.refuse_claim(queue, d, format('there is no such %s', e.entity));
    elsif seen->>'state' <> claim->>'from' then
      return pawl.refuse_claim(queue, d, format('the %s is %s, not %s', e.entity, seen->>'state', claim->>'from'));
    end if;
    insert into pawl.entity_claims (entity, entity_id, task_id, step, index, attempt, version, revert_to, on_success,
      claimed_at, lease_until)
    values (e.entity, seen->>'id', s.task_id, s.step, s.index, s.attempt, version, claim->>'revert_to', claim->>'on_success', at,
      at + pawl.lease_left(queue, d.msg_id));
  end if;
  update pawl.steps x set state = 'in_progress', revision = x.revision + 1, deliveries = d.read_ct,
    worker = begin_claimed_delivery.worker, state_since = at,
    due_at = case when x.state = 'in_progress' then x.due_at
      else at + (d.headers->>'timeout_ms')::float * interval '1 ms' end
  where x.task_id = s.task_id and x.step = s.step and x.index = s.index;
  return 'begun';
end $$;
