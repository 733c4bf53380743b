-- does: says why a request's key does not fit its template's identity strategy; null when it does.
-- called by: process_task_requests.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.key_problem(strategy text, key jsonb) returns jsonb language sql stable as $$
  select case
    when strategy = 'caller_provided' and coalesce(key, 'null') = 'null' then
      '{"error": "KeyRequired", "message": "the template takes only requests with a key: give one"}'::jsonb
    when strategy in ('strict', 'always_unique') and coalesce(key, 'null') <> 'null' then jsonb_build_object('error', 'KeyNotTaken',
      'message', format('the identity strategy of the template is %s: it takes no key', strategy)) end
$$;
