-- does: tells the errors after which it makes no sense to go on without the one task, queue or row that raised: infrastructure
--   errors, but for a queue that is missing.
-- called by: fire_due, fire_alone, release_held, send_reply, revert_stale_claims.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.concerns_all(code text) returns boolean language sql immutable as $$
  select pawl.is_infrastructure_error(code) and code not in ('42883', '42P01')
$$;
