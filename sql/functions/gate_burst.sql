-- does: the burst of a queue's rate limit: what is configured, else what the limit allows in one second, at least one.
-- called by: gate_level, open_gate.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.gate_burst(q pawl.queues) returns int language sql immutable as $$
  select coalesce(q.burst, greatest(1, ceil(q.rate_limit / extract(epoch from q.rate_period)))::int)
$$;
