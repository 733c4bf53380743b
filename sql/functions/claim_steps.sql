-- does: reads up to quantity step messages and begins their deliveries. Returns an array of {msg_id, read_ct, task_id,
--   step, index, attempt, delivery, handler, input, dependencies, config, token, correlation_id, lease_ms, headers}.
--   The read is kept when beginning raises: it costs a delivery, never the queue; what raises is tried alone.
-- called by: workers, report_and_claim_steps. options: {lease_ms, max_bytes}.
-- locks: messages and step rows, both skip locked: it never waits.
-- raises: PW010 for a queue that nothing names, PW014 without a worker, PW024 for an unknown option.
create or replace function pawl.claim_steps(queue text, quantity int, worker text, options jsonb default '{}') returns json
language plpgsql set jit = off as $$
declare
  batch pawl.delivery[];
  claimed json[] := '{}';
  one pawl.delivery;
  found_json json;
begin
  if coalesce(worker, '') = '' then
    raise exception 'worker is missing' using errcode = 'PW014', hint = 'Name the worker: any text that tells its processes apart.';
  end if;
  if options <> '{}' and options - '{lease_ms,max_bytes}'::text[] <> '{}' then
    perform pawl.refuse_setting('an option of the claim', 'lease_ms, max_bytes, or nothing');
  end if;
  if not pawl.open_for_claims(queue) then
    return '[]';
  end if;
  execute format('select pawl_queues.%I($1, $2, $3)', 'read_' || queue) into batch
    using quantity, coalesce((options->>'lease_ms')::bigint, 30000), coalesce((options->>'max_bytes')::bigint, 4194304);
  if batch is null then
    return '[]';
  end if;
  begin
    return pawl.begin_deliveries(queue, batch, worker);
  exception when others then
    -- Infrastructure errors and one bad message look alike here: alone, each shows which it is.
    foreach one in array batch loop
      begin
        found_json := pawl.begin_deliveries(queue, array[one], worker);
        claimed := claimed || array(select e from json_array_elements(found_json) e);
      exception when others then
        perform pawl.refuse_delivery(queue, one, sqlstate, sqlerrm);
      end;
    end loop;
  end;
  return array_to_json(claimed);
end $$;
