-- does: SHA-256 over the canonical form of an input.
-- called by: decide_identity, process_task_requests.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.fingerprint(input jsonb) returns bytea language sql immutable as $$
  select sha256(convert_to(coalesce(pawl.canonical_json(input)::text, 'null'), 'UTF8'))
$$;
