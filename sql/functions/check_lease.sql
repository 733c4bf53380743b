-- does: refuses a lease that is over before it begins, or that nobody would live to see end. Null says nothing.
-- called by: claim_steps, extend_leases.
-- locks: nothing.
-- raises: PW024.
create or replace function pawl.check_lease(lease_ms bigint) returns void language plpgsql as $$
begin
  if not lease_ms between 1 and 43200000 then
    perform pawl.refuse_setting('lease_ms', 'milliseconds from 1 to 43200000, twelve hours');
  end if;
end $$;
