-- does: wakes the clocks of all orchestrators, on channel pawl_due: something is due sooner than they may know.
-- called by: settle_odd_step_results for back-offs, create_tasks for start times.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.announce_due() returns void language plpgsql as $$
begin
  if (select s.announce from pawl.engine_settings s) then
    perform pg_notify('pawl_due', '');
  end if;
end $$;
