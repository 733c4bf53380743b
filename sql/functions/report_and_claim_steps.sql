-- does: report_steps and claim_steps in one call and one commit, for workers without a backlog of reports. Returns
--   {reported: […], claimed: […]}.
-- called by: workers.
-- locks: as report_steps, then as claim_steps, which never waits.
-- raises: as both.
create or replace function pawl.report_and_claim_steps(queue text, reports jsonb, quantity int, worker text,
  options jsonb default '{}') returns json language plpgsql as $$
declare
  reported json := pawl.report_steps(queue, reports, worker);
begin
  return json_build_object('reported', reported, 'claimed', pawl.claim_steps(queue, quantity, worker, options));
end $$;
