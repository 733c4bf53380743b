-- does: writes a duration as parse_duration reads it, down to milliseconds.
-- called by: show_queue_settings, configure_template.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.show_duration(value interval) returns text language sql stable as $$
  select case when value = interval '0' then '0' else (
    select string_agg(u.n || u.name, '' order by u.place)
    from (select (extract(epoch from value) * 1000)::bigint as ms) x
    cross join lateral (values (1, 'd', ms / 86400000), (2, 'h', ms / 3600000 % 24), (3, 'm', ms / 60000 % 60),
      (4, 's', ms / 1000 % 60), (5, 'ms', ms % 1000)) u(place, name, n)
    where u.n > 0) end
$$;
