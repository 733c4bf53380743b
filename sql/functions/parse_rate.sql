-- does: reads a rate limit as configuration writes it: 100/sec, 5/s, 30/min, 1000/hour. Gives its period; the number before
--   the stroke is the limit.
-- called by: queue_settings.
-- locks: nothing.
-- raises: PW024 for what is none.
create or replace function pawl.parse_rate(value text, out rate_limit int, out rate_period interval) language plpgsql immutable as $$
declare
  parts text[] := regexp_match(value, '^([1-9][0-9]{0,8})[[:space:]]*/[[:space:]]*(s|sec|second|m|min|minute|h|hour)$');
begin
  if parts is null then
    raise exception '% is not a rate limit', quote_nullable(left(value, 80)) using errcode = 'PW024',
      hint = 'Write it like 100/sec, 30/min or 1000/hour.';
  end if;
  rate_limit := parts[1]::int;
  rate_period := case left(parts[2], 1) when 's' then interval '1 second' when 'm' then interval '1 minute' else interval '1 hour' end;
end $$;
