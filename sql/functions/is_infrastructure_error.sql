-- does: tells the errors that say nothing about the message: serialization, deadlock, lock timeout, shutdown, resources,
--   connection, read-only, a queue that is missing. They never make a dead letter and never change business state.
-- called by: claim_steps through refuse_delivery; the actors ask the same of SQLSTATEs in Go (a test compares).
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.is_infrastructure_error(code text) returns boolean language sql immutable as $$
  select code in ('40001', '40P01', '55P03', '25006', '42883', '42P01') or left(code, 2) in ('57', '53', '08')
$$;
