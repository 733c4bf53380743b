-- does: how many held steps a queue may release now: by pause, concurrency and rate. Cleans slots of attempts that have
--   ended. A message that was put off, because somebody else's claim is in its way, does not count as unclaimed until it is
--   due. next_ms says when to look again, null when only a command can change the answer. A queue whose table is gone
--   releases nothing: it would fail for all queues.
-- called by: release_held, under the queue row's lock. Its caller subtracts what it released.
-- locks: nothing more.
-- raises: nothing.
create or replace function pawl.open_gate(q pawl.queues, quantity int, out free int, out next_ms bigint)
language plpgsql as $$
declare
  at timestamptz := pawl.now();
  unclaimed int := 0;
  level double precision;
  per_second double precision := q.rate_limit / extract(epoch from q.rate_period);
begin
  free := quantity;
  if q.paused then
    free := 0;
    return;
  end if;
  if pawl.queue_table(q.queue) is null then
    free := 0;
    next_ms := 1000;
    return;
  end if;
  if q.max_concurrency is not null then
    delete from pawl.held_steps h where h.queue = q.queue and h.released_at is not null and not exists (
      select from pawl.steps s where s.task_id = h.task_id and s.step = h.step and s.index = h.index
        and s.attempt = h.attempt and s.state in ('enqueued', 'in_progress'));
    free := least(free, greatest(0, q.max_concurrency - (select count(*) from pawl.held_steps h
      where h.queue = q.queue and h.released_at is not null)));
    next_ms := case when free < quantity then 1000 end; -- the end of an attempt asks for a look sooner
  end if;
  if q.rate_limit is not null then
    execute format('select count(*) from (select from pgmq.%I m where m.read_ct = 0 and m.vt <= clock_timestamp() limit $1) u', 'q_' || q.queue)
      into unclaimed using pawl.gate_burst(q) + q.unclaimed_count + 1;
    level := pawl.gate_level(q, at, unclaimed);
    update pawl.queues x set tokens = level, tokens_at = at, unclaimed_count = least(unclaimed, q.unclaimed_count)
    where x.queue = q.queue;
    free := least(free, greatest(0, floor(level + 1e-6) - unclaimed)::int);
    if free < quantity then
      -- The next token's time; while the bucket is full of unclaimed messages, soon, to see them go.
      next_ms := least(coalesce(next_ms, 3600000), case when unclaimed > 0 and level + 1 > pawl.gate_burst(q)
        then least(1000, greatest(5, 50 / per_second))
        else greatest(1, ceil((1 - (level - floor(level + 1e-6))) / per_second * 1000)) end);
    end if;
  end if;
end $$;
