-- does: report_steps and claim_steps in one call and one commit, for workers without a backlog of reports. Returns
--   {reported: […], claimed: […]}. What a few reports make ready in their own queue is announced only if this call's claim
--   may have left some of it.
-- called by: workers.
-- locks: as report_steps, then as claim_steps, which never waits.
-- raises: as both.
create or replace function pawl.report_and_claim_steps(queue text, reports jsonb, quantity int, worker text,
  options jsonb default '{}') returns json language plpgsql as $$
declare
  few boolean := case when jsonb_typeof(reports) = 'array' and quantity > 0 then jsonb_array_length(reports) <= 4 end;
  reported json;
  claimed json;
begin
  if few then
    perform set_config('pawl.quiet', 'q_' || queue, true);
  end if;
  reported := pawl.report_steps(queue, reports, worker);
  if few then
    perform set_config('pawl.quiet', '', true);
  end if;
  claimed := pawl.claim_steps(queue, quantity, worker, options);
  if few and json_array_length(claimed) >= quantity then
    perform pawl.tell('pgmq.q_' || queue || '.INSERT', format('pawl_queues.%I', 'announced_' || queue)::regclass);
  end if;
  return json_build_object('reported', reported, 'claimed', claimed);
end $$;
