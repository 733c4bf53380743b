-- does: opens the gates: releases held steps of queues with a rate or concurrency limit as far as these allow, first
--   attempts before retries, oldest first; and all held steps of queues that are no longer gated. Exact over any number of
--   orchestrators, since one at a time counts a queue. Returns {released, next_ms}.
-- called by: the step-enqueuer's clock; process_step_enqueues for {queue, reason} messages.
-- locks: queue rows (skip locked), tasks (skip locked), then their steps: it never waits.
-- raises: nothing of its own.
create or replace function pawl.release_held(quantity int default 1000, processor text default null) returns jsonb
language plpgsql set jit = off as $$
declare
  q pawl.queues;
  gate record;
  name text;
  begun int;
  released int := 0;
  next_ms bigint;
begin
  for name in
    select x.queue from pawl.queues x
    where exists (select from pawl.held_steps h where h.queue = x.queue and h.released_at is null) order by x.queue
  loop
    select * into q from pawl.queues x where x.queue = name for update skip locked;
    if not found then
      next_ms := least(next_ms, 50);
      continue;
    end if;
    perform set_config('pawl.processor', coalesce(processor, ''), true);
    gate := pawl.open_gate(q, quantity);
    if gate.free > 0 then
      begun := pawl.release_queue(q, gate.free);
      released := released + begun;
      if begun = 0 or (begun = gate.free and gate.next_ms is null) then
        gate.next_ms := 20; -- somebody holds their tasks, or there is more
      end if;
    end if;
    if exists (select from pawl.held_steps h where h.queue = name and h.released_at is null) then
      next_ms := least(next_ms, gate.next_ms);
    end if;
  end loop;
  return jsonb_build_object('released', released, 'next_ms', next_ms);
end $$;
