-- does: reads a client's requests, where SQL alone can judge each of them: plain ones (is_plain_request) for templates that take
--   any input and whose steps start without asking, no more steps than one transaction may begin. Null when it cannot,
--   while the engine is staged, and to a transaction that sees gates and templates as they were at its begin. By task id, so that no two transactions wait for each other. A loop, because one request is
--   the commonest case and a statement for it takes longer to begin than to run.
-- called by: submit_requests.
-- locks: nothing.
-- raises: what a body or a header that is no JSON raises, or a request_id that is no UUID.
create or replace function pawl.plain_requests(bodies text[], request_headers text[]) returns pawl.task_request[]
language plpgsql stable as $$
declare
  settings pawl.engine_settings;
  requests pawl.task_request[] := '{}';
  body jsonb;
  place jsonb;
  known jsonb;
  path text[];
  template record;
  steps bigint := 0;
begin
  select * into settings from pawl.engine_settings;
  if settings.staged or not settings.direct or current_setting('transaction_isolation') <> 'read committed' then
    return null;
  end if;
  for n in 1 .. cardinality(bodies) loop
    body := bodies[n]::jsonb;
    if octet_length(bodies[n]) > 1048576 or not pawl.is_plain_request(body) then
      return null;
    end if;
    place := body - '{v,request_id,input,correlation_id,requester,tags}'::text[];
    if place is distinct from known then
      path := case when place ? 'template' then regexp_match(place->>'template', '^([^/@]+)/([^/@]+)(?:@(.+))?$')
        else array[coalesce(place->>'namespace', 'default'), place->>'handler',
          'adhoc:' || coalesce(place->>'queue', coalesce(place->>'namespace', 'default') || '_queue')] end;
      select t.template_id, t.step_count, t.takes_any_input and not t.has_special_steps and t.parked_reason is null
        and t.identity_strategy in ('default', 'always_unique') as plain
      into template from pawl.templates t
      where t.namespace = path[1] and t.name = path[2] and t.version = coalesce(path[3], t.version) and t.adhoc = place ? 'handler'
      order by t.template_id desc limit 1;
      if template.plain is not true then
        return null;
      end if;
      known := place;
    end if;
    steps := steps + template.step_count;
    requests := requests || (null, 0, (body->>'request_id')::uuid, template.template_id, body, request_headers[n]::jsonb,
      null, null, null)::pawl.task_request;
  end loop;
  return case when steps <= settings.max_steps_per_transaction then case when cardinality(bodies) = 1 then requests
    else array(select r::pawl.task_request from unnest(requests) r order by r.task_id) end end;
end $$;
