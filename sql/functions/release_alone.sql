-- does: opens a queue's gate for its held steps one by one, after one of them raised: what one raises is undone, and it
--   stands behind all others from now on. Returns how many were released; tried counts what raised as well.
-- called by: release_held.
-- locks: the queue's row and tasks, skip locked, then their steps.
-- raises: what says nothing about one step: deadlocks, timeouts, a lack of resources.
create or replace function pawl.release_alone(name text, quantity int, out released int, out tried int)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  q pawl.queues;
  gate record;
  one record;
begin
  released := 0;
  tried := 0;
  select * into q from pawl.queues x where x.queue = name for update skip locked;
  if not found then
    return;
  end if;
  gate := pawl.open_gate(q, quantity);
  for one in
    select h.task_id, h.step, h.index from pawl.held_steps h where h.queue = name and h.released_at is null
    order by (h.attempt > 1), h.held_at limit quantity
  loop
    exit when released = gate.free;
    begin
      perform from pawl.tasks t where t.task_id = one.task_id for no key update skip locked;
      if found then
        released := released + pawl.release_refs(q, array[(one.task_id, one.step, one.index)::pawl.step_ref]);
      end if;
    exception when others then
      if pawl.concerns_all(sqlstate) then
        raise;
      end if;
      tried := tried + 1;
      update pawl.held_steps h set held_at = at
      where h.task_id = one.task_id and h.step = one.step and h.index = one.index and h.released_at is null;
    end;
  end loop;
  tried := tried + released;
end $$;
