-- does: reads a uuid, or gives null for what is none.
-- called by: functions that look at messages nobody has checked.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.as_uuid(value text) returns uuid language sql immutable as $$
  select case when value ~ '^[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}$' then value::uuid end
$$;
