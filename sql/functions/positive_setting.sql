-- does: reads a setting that is a whole number from 1 on, or null.
-- called by: queue_settings.
-- locks: nothing.
-- raises: PW024.
create or replace function pawl.positive_setting(name text, given jsonb) returns int language plpgsql immutable as $$
begin
  if given = 'null' then
    return null;
  elsif jsonb_typeof(given) <> 'number' or given::text !~ '^[1-9][0-9]{0,8}$' then
    perform pawl.refuse_setting(name, 'a whole number from 1 to 999999999');
  end if;
  return given::int;
end $$;
