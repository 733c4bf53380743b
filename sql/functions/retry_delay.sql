-- does: how long a failed step waits before its next attempt: what the handler asked for (retry_after, seconds, at most a
--   day), else the step's back-off with jitter.
-- called by: settle_odd_step_results.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.retry_delay(limits pawl.template_steps, failures int, error jsonb) returns interval
language sql volatile as $$
  select case
    when jsonb_typeof(error->'retry_after') = 'number' then least(greatest((error->>'retry_after')::numeric, 0), 86400)::float * interval '1 s'
    else least(limits.max_ms, case limits.backoff
        when 'none' then 0
        when 'fixed' then limits.base_ms
        when 'linear' then limits.base_ms * failures
        else limits.base_ms * power(2, least(failures, 40) - 1) end)
      * (1 + limits.jitter * (random() - 0.5)) * interval '1 ms' end
$$;
