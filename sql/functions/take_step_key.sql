-- does: gives a key to a step unless a living step holds it: a holder that failed, was cancelled, expired or is gone holds
--   nothing; but while some still wait for its result it has the key, however short the window. Returns the holder as it is then, null
--   when another transaction works with the key at this moment.
-- called by: attach_ready_steps, end_step_by_hand.
-- locks: the identity row, skip locked; for a new key an advisory lock that every inserter tries first, so that no insert
--   waits for another: a transaction may come here several times, with keys in any order.
-- raises: nothing.
create or replace function pawl.take_step_key(ref pawl.step_ref, scope text, key text) returns pawl.step_identities
language plpgsql set plan_cache_mode = force_generic_plan as $$
declare
  held pawl.step_identities;
  living boolean;
begin
  loop
    select * into held from pawl.step_identities i
    where i.scope = take_step_key.scope and i.key = take_step_key.key for update skip locked;
    if found then
      exit when (held.task_id, held.step, held.index) = (ref.task_id, ref.step, ref.index) and held.expires_at is null;
      living := exists (select from pawl.steps s where s.task_id = held.task_id and s.step = held.step and s.index = held.index
        and s.state not in ('error', 'cancelled', 'skipped')) and (held.expires_at <= pawl.now()) is not true;
      exit when living or (exists (select from pawl.step_key_waiters w
          join pawl.steps s on s.task_id = w.task_id and s.step = w.step and s.index = w.index and s.state = 'waiting' -- no more: cancelled
          where w.scope = held.scope and w.key = held.key)
        and exists (select from pawl.steps s where s.task_id = held.task_id and s.step = held.step and s.index = held.index
          and s.state in ('complete', 'resolved_manually')));
      update pawl.step_identities i set task_id = ref.task_id, step = ref.step, index = ref.index, status = 'running',
        expires_at = null
      where i.scope = held.scope and i.key = held.key returning * into held;
      exit;
    end if;
    if exists (select from pawl.step_identities i where i.scope = take_step_key.scope and i.key = take_step_key.key)
      or not pg_try_advisory_xact_lock(hashtextextended(scope || ' ' || key, 7)) then
      return null;
    end if;
    insert into pawl.step_identities (scope, key, task_id, step, index, status)
    values (scope, key, ref.task_id, ref.step, ref.index, 'running') on conflict do nothing returning * into held;
    exit when found;
  end loop;
  return held;
end $$;
