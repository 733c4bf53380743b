-- does: says whether a request's body is well-formed beyond doubt and asks for nothing that has to be decided: no key, no start
--   time, no reply. What is in doubt (brackets, digits or bytes that may be too many) is left to the task-request
--   actor, and whether a request_id of a UUID's form is one to its cast. Paths are strict, else a list of strings passes for a
--   string; a 1.0 is no version though it equals 1.
--   What takes few bytes here nests 64 levels nowhere, each takes eight, and is at most megabytes as text, in which a vast number shows
--   by its digits. (A stored body may be compressed: its size says nothing.)
-- called by: plain_requests, folded into its condition: one expression, no query.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.is_plain_request(body jsonb) returns boolean language sql stable as $$
  select case when jsonb_typeof(body) = 'object' then
    body - '{v,request_id,template,namespace,handler,queue,input,correlation_id,requester,tags}'::text[] = '{}'
    and coalesce(body->'v', '1') = '1' and coalesce(body->>'v', '1') = '1'
    and body ?& '{request_id,input}' and body ? 'template' <> (body ? 'handler')
    and not (body ? 'template' and body ?| '{namespace,queue}')
    and not jsonb_path_exists(body - '{v,input,tags}'::text[], 'strict $.* ? (@.type() != "string" || @ == "")')
    and body->>'request_id' like '________-____-____-____-____________'
    and body->>'request_id' <> '00000000-0000-0000-0000-000000000000'
    and (not body ? 'tags' or jsonb_typeof(body->'tags') = 'object'
      and not jsonb_path_exists(body->'tags', 'strict $.* ? (@.type() != "string")'))
    and case when pg_column_size(body) < 512 then (body->'input')::text !~ '[0-9.-]{65}'
      when not pawl.has_vast_number(body) then octet_length(body::text) <= 1048576
        and (body->'input')::text !~ '^([^{[]*[{[]){64}|[0-9.-]{65}' else false end
  else false end
$$;
