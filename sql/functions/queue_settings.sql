-- does: gives a queue's row as it would be with new settings, checked field by field.
-- called by: change_queue.
-- locks: nothing.
-- raises: PW024 for an unknown field or a bad value.
create or replace function pawl.queue_settings(q pawl.queues, settings jsonb) returns pawl.queues language plpgsql as $$
declare
  field record;
  value text;
begin
  if jsonb_typeof(settings) is distinct from 'object' then
    perform pawl.refuse_setting('the settings of a queue', 'an object such as {"rate_limit": "100/sec"}');
  end if;
  for field in select * from jsonb_each(settings) f(name, given) loop
    value := settings->>field.name;
    case field.name
      when 'rate_limit' then
        q.rate_limit := null;
        q.rate_period := null;
        if value is not null then
          select r.rate_limit, r.rate_period into q.rate_limit, q.rate_period from pawl.parse_rate(value) r;
        end if;
      when 'burst' then q.burst := pawl.positive_setting(field.name, field.given);
      when 'max_concurrency' then q.max_concurrency := pawl.positive_setting(field.name, field.given);
      when 'retention' then q.retention := pawl.parse_duration(value);
      when 'paused' then
        if jsonb_typeof(field.given) not in ('boolean', 'null') then
          perform pawl.refuse_setting('paused', 'true or false');
        end if;
        q.paused := coalesce(value::boolean, false);
      else perform pawl.refuse_setting(quote_literal(left(field.name, 80)),
        'a setting that exists: rate_limit, burst, max_concurrency, paused, retention');
    end case;
  end loop;
  q.gated := q.paused or q.rate_limit is not null or q.max_concurrency is not null;
  return q;
end $$;
