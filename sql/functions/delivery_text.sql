-- does: writes one delivery as a claim returns it. Text is put together because building an object of fifteen fields again
--   costs as much as all the rest of a claim. right, for substr counts the characters up to the end: that costs as much as writing them.
-- called by: begin_deliveries.
-- locks: nothing.
-- raises: what a malformed by_reference message raises.
create or replace function pawl.delivery_text(msg_id bigint, read_ct int, message jsonb, headers jsonb) returns text
language sql stable as $$
  select '{"msg_id":' || msg_id || ',"read_ct":' || read_ct || ',"delivery":' || read_ct
    || ',"lease_ms":' || coalesce(headers->>'lease_ms', '30000') || ',"headers":' || coalesce(headers::text, 'null')
    || case when message ? 'by_reference' then ',' || pawl.inside(pawl.step_input((message->>'task_id')::uuid,
      message->>'step', coalesce((message->>'index')::int, 0))) else '' end
    || ',' || right(message::text, -1)
$$;
