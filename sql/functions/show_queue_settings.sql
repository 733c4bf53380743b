-- does: a queue's settings as configure_queue takes them; what is not set is null.
-- called by: change_queue, pawl config show.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.show_queue_settings(q pawl.queues) returns jsonb language sql stable as $$
  select jsonb_build_object('paused', q.paused, 'burst', q.burst, 'max_concurrency', q.max_concurrency,
    'rate_limit', q.rate_limit || case q.rate_period when interval '1 second' then '/sec' when interval '1 minute' then '/min'
      else '/hour' end,
    'retention', pawl.show_duration(q.retention))
$$;
