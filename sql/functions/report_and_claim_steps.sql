-- does: report_steps and claim_steps in one call and one commit, for workers without a backlog of reports. Returns
--   {reported: […], claimed: […]}. What a few reports make ready in their own queue is announced only if this call's claim
--   may have left some of it. pawl.quiet tells how far that is: q_QUEUE while reporting; "q_QUEUE kept" once something is to be
--   announced (announce); "q_QUEUE claims" while claiming; "q_QUEUE left" when a bound ended the read (pawl_queues.read_QUEUE).
-- called by: workers.
-- locks: as report_steps, then as claim_steps, which never waits.
-- raises: as both.
create or replace function pawl.report_and_claim_steps(queue text, reports jsonb, quantity int, worker text,
  options jsonb default '{}') returns json language plpgsql set jit = off as $$
declare
  own text := 'q_' || queue;
  few boolean := case when jsonb_typeof(reports) = 'array' and quantity > 0 then jsonb_array_length(reports) <= 4 end;
  reported json;
  claimed json;
begin
  if few then
    perform set_config('pawl.quiet', own, true);
  end if;
  reported := pawl.report_steps(queue, reports, worker);
  if few then
    few := current_setting('pawl.quiet') = own || ' kept';
    perform set_config('pawl.quiet', case when few then own || ' claims' else '' end, true);
  end if;
  claimed := pawl.claim_steps(queue, quantity, worker, options);
  if few then
    if current_setting('pawl.quiet') = own || ' left' then
      perform pawl.tell('pgmq.' || own || '.INSERT', format('pawl_queues.%I', 'announced_' || queue)::regclass);
    end if;
    perform set_config('pawl.quiet', '', true);
  end if;
  return json_build_object('reported', reported, 'claimed', claimed);
end $$;
