-- does: reads up to quantity step messages and begins their deliveries. Returns an array of {msg_id, read_ct, task_id,
--   step, index, attempt, delivery, handler, input, dependencies, config, token, correlation_id, lease_ms, headers}.
--   The read is kept when beginning raises: it costs a delivery, never the queue; what raises is tried alone.
--   When nothing of a read began (its messages were stale, say), it reads on, or the steps behind would wait for the
--   caller's next look. It stays short: after 20 reads or 500 messages it says that there is more by announcing the queue.
-- called by: workers, report_and_claim_steps. options: {lease_ms, max_bytes}.
-- locks: messages and step rows, both skip locked: it never waits.
-- raises: PW010 for a queue that nothing names, PW014 without a worker, PW024 for an unknown option and a bad quantity, lease or bound.
create or replace function pawl.claim_steps(queue text, quantity int, worker text, options jsonb default '{}') returns json
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  own text := 'q_' || queue;
  batch pawl.delivery[];
  claimed json;
  begun json[];
  one pawl.delivery;
  taken int := 0;
  ill boolean := false;
begin
  if coalesce(worker, '') = '' then
    raise exception 'worker is missing' using errcode = 'PW014', hint = 'Name the worker: any text that tells its processes apart.';
  end if;
  if quantity is null or quantity < 0 then
    perform pawl.refuse_setting('quantity', 'how many steps to claim at most, from 0');
  elsif options <> '{}' then
    if (case jsonb_typeof(options) when 'object' then options - '{lease_ms,max_bytes}'::text[] <> '{}' else true end) then
      perform pawl.refuse_setting('an option of the claim', 'lease_ms, max_bytes, or nothing');
    elsif options->>'max_bytes' !~ '^[1-9][0-9]{0,17}$' then
      perform pawl.refuse_setting('max_bytes', 'a number of bytes, from 1');
    end if;
    perform pawl.check_lease(case when options->>'lease_ms' ~ '^[0-9]{1,9}$' then (options->>'lease_ms')::bigint
      when options->>'lease_ms' is not null then 0 end);
  end if;
  if not pawl.open_for_claims(queue) then
    return '[]';
  end if;
  perform set_config('pawl.actor', '', true), set_config('pawl.reason', '', true); -- as in report_steps
  for round in 1 .. 20 loop
    execute format('select pawl_queues.%I($1, $2, $3)', 'read_' || queue) into batch
      using quantity, coalesce((options->>'lease_ms')::bigint, 30000), coalesce((options->>'max_bytes')::bigint, 4194304);
    if batch is null then
      return '[]';
    end if;
    begin
      claimed := pawl.begin_deliveries(queue, batch, worker);
    exception when others then
      -- Infrastructure errors and one bad message look alike here: alone, each shows which it is.
      begun := '{}';
      foreach one in array batch loop
        begin
          claimed := pawl.begin_deliveries(queue, array[one], worker);
          begun := begun || array(select e from json_array_elements(claimed) e);
        exception when others then
          ill := ill or pawl.is_infrastructure_error(sqlstate);
          perform pawl.refuse_delivery(queue, one, sqlstate, sqlerrm);
        end;
      end loop;
      claimed := array_to_json(begun);
    end;
    if claimed::text <> '[]' or ill then
      return claimed;
    end if;
    if current_setting('pawl.quiet', true) = own || ' left' then
      perform set_config('pawl.quiet', own || ' claims', true); -- what that read left is read now
    end if;
    taken := taken + cardinality(batch);
    exit when taken >= 500;
  end loop;
  perform pawl.tell('pgmq.' || own || '.INSERT', format('pawl_queues.%I', 'announced_' || queue)::regclass);
  return '[]';
end $$;
