-- What a step's message says. As a row it becomes JSON at three quarters of what its names and values cost one by one.
create type pawl.step_message as (v int, task_id uuid, step text, index int, attempt int, handler text, config jsonb,
  correlation_id text, token text, input jsonb, dependencies jsonb);
