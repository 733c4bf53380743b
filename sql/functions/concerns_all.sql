-- does: tells the errors after which it makes no sense to go on without the one task, queue or row that raised: infrastructure
--   errors, but for a queue that is missing.
-- called by: whatever goes on after an error of one: fire_due, release_held, repair_tasks, revert_stale_claims, unfit_state and their like.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.concerns_all(code text) returns boolean language sql immutable as $$
  select pawl.is_infrastructure_error(code) and code not in ('42883', '42P01')
$$;
