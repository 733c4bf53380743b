-- does: fills the token bucket of a queue's rate limit up to a time. The bucket counts starts of attempts: a released
--   message takes its token when it is claimed, and one that waits for a worker keeps its place in the bucket. What was
--   claimed since the last look counts as claimed now. So a bucket never holds more than the burst together with what is
--   released and unclaimed, and workers that stop for a while find one burst, not two: no window of time sees more starts
--   than the limit allows in it plus one burst, however seldom the gate looks.
-- called by: open_gate, change_queue: under the queue row's lock.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.gate_level(q pawl.queues, at timestamptz, unclaimed int) returns double precision
language sql stable as $$
  select case when q.tokens is null then pawl.gate_burst(q)
    else least(pawl.gate_burst(q), q.tokens + greatest(0, extract(epoch from at - q.tokens_at))
        * q.rate_limit / extract(epoch from q.rate_period))
      - greatest(0, q.unclaimed_count - unclaimed) end
$$;
