-- does: tells the errors that say nothing about the message: serialization, deadlock, lock timeout, shutdown, resources,
--   connection, read-only, the server's files, a queue that is missing, statements that a pooler mixed up. They never make a
--   dead letter and never change business state. Not XX: what one task meets for ever must not stop those who ask (concerns_all).
-- called by: claim_steps through refuse_delivery; the actors ask the same of SQLSTATEs in Go (a test compares).
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.is_infrastructure_error(code text) returns boolean language sql immutable as $$
  select code in ('40001', '40P01', '55P03', '25006', '25P03', '25P04', '26000', '42883', '42P01', '42P05')
    or left(code, 2) in ('57', '53', '08', '58')
$$;
