-- does: opens the gates: releases held steps of queues with a rate or concurrency limit as far as these allow, first
--   attempts before retries, oldest first; and all held steps of queues that are no longer gated. At most quantity in all;
--   each look begins with another queue. Exact over any number of orchestrators, since one at a time counts a queue. When a gate
--   raises, its steps are released one by one (release_alone), and what was tried counts as done. Returns {released, next_ms,
--   raised}: next_ms is 0 when there is more, null when only a command can change the answer; raised is {queue, sqlstate,
--   message} of one gate.
-- called by: the step-enqueuer's clock; process_step_enqueues for {queue, reason} messages.
-- locks: queue rows (skip locked), tasks (skip locked), then their steps: it never waits.
-- raises: what says nothing about one queue: deadlocks, timeouts, a lack of resources.
create or replace function pawl.release_held(quantity int default 1000, processor text default null) returns jsonb
language plpgsql set jit = off as $$
declare
  q pawl.queues;
  gate record;
  name text;
  begun int;
  released int := 0;
  free int := quantity;
  next_ms bigint;
  raised jsonb;
begin
  perform set_config('pawl.processor', coalesce(processor, ''), true);
  for name in
    select x.queue from pawl.queues x
    where exists (select from pawl.held_steps h where h.queue = x.queue and h.released_at is null) order by random()
  loop
    if free = 0 then
      next_ms := 0;
      exit;
    end if;
    begun := 0;
    begin
      select * into q from pawl.queues x where x.queue = name for update skip locked;
      if not found then
        next_ms := least(next_ms, 50);
        continue;
      end if;
      gate := pawl.open_gate(q, free);
      if gate.free > 0 then
        begun := gate.free;
        begun := pawl.release_queue(q, gate.free);
        if begun < gate.free or gate.next_ms is null then
          gate.next_ms := case when begun < free then 20 else 0 end; -- somebody holds the others' tasks, or there is more
        end if;
      end if;
      released := released + begun;
      if exists (select from pawl.held_steps h where h.queue = name and h.released_at is null) then
        next_ms := least(next_ms, gate.next_ms);
      end if;
    exception when others then
      if pawl.concerns_all(sqlstate) then
        raise;
      end if;
      next_ms := least(next_ms, 1000);
      raised := jsonb_build_object('queue', name, 'sqlstate', sqlstate, 'message', sqlerrm);
      begin
        gate := pawl.release_alone(name, free);
        begun := greatest(begun, gate.tried);
        released := released + gate.released;
        next_ms := case when gate.released > 0 then least(next_ms, 20) else next_ms end;
      exception when others then
        if pawl.concerns_all(sqlstate) then
          raise;
        end if;
      end;
    end;
    free := free - begun;
  end loop;
  return jsonb_build_object('released', released, 'next_ms', next_ms, 'raised', raised);
end $$;
