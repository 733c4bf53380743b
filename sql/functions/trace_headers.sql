-- does: gives what a request's headers say about its trace (W3C: traceparent, tracestate, baggage), which its task's messages
--   carry on. Nothing else of them: other headers tell a queue's reader what a lease or a delivery may be.
-- called by: create_tasks, folded into its statement, which an immutable one that builds jsonb is not.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.trace_headers(headers jsonb) returns jsonb language sql stable as $$
  select case when headers is not null then nullif(jsonb_strip_nulls(jsonb_build_object(
    'traceparent', case when jsonb_typeof(headers->'traceparent') = 'string' and length(headers->>'traceparent') <= 512 then headers->'traceparent' end,
    'tracestate', case when jsonb_typeof(headers->'tracestate') = 'string' and length(headers->>'tracestate') <= 512 then headers->'tracestate' end,
    'baggage', case when jsonb_typeof(headers->'baggage') = 'string' and length(headers->>'baggage') <= 8192 then headers->'baggage' end)), '{}') end
$$;
