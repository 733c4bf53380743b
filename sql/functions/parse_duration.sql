-- does: reads a duration as templates and configuration write it: 30s, 5m, 1h30m, 7d, 250ms, greater units first, or 0; null for null.
-- called by: configure_queue, configure_template.
-- locks: nothing.
-- raises: PW024 for what is none, or is longer than ten years.
create or replace function pawl.parse_duration(value text) returns interval language plpgsql immutable as $$
declare
  parts text[] := regexp_match(value, '^(?:([0-9]{1,15})d)?(?:([0-9]{1,15})h)?(?:([0-9]{1,15})m)?(?:([0-9]{1,15})s)?(?:([0-9]{1,15})ms)?$');
  seconds numeric;
begin
  if value is null or value = '0' then
    return value::interval;
  end if;
  seconds := coalesce(parts[1]::numeric * 86400, 0) + coalesce(parts[2]::numeric * 3600, 0) + coalesce(parts[3]::numeric * 60, 0)
    + coalesce(parts[4]::numeric, 0) + coalesce(parts[5]::numeric / 1000, 0);
  if parts is null or value = '' or seconds > 315360000 then
    raise exception '% is not a duration', quote_nullable(left(value, 80)) using errcode = 'PW024',
      hint = 'Write it like 30s, 5m, 1h30m, 7d or 0; at most 3650d.';
  end if;
  return seconds * interval '1 s';
end $$;
