-- does: refuses leases that are none. Null says nothing.
-- called by: extend_leases, release_steps.
-- locks: nothing.
-- raises: PW024.
create or replace function pawl.check_leases(leases jsonb) returns void language sql as $$
  select pawl.refuse_setting('leases', 'an array of {msg_id, read_ct}, as the claim gave them')
  where case jsonb_typeof(leases) when 'array' then exists (select from jsonb_array_elements(leases) l
    where coalesce(l->>'msg_id', '') !~ '^[0-9]{1,18}$' or coalesce(l->>'read_ct', '') !~ '^[0-9]{1,9}$')
    else leases is not null end
$$;
