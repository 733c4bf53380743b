-- does: wakes those who wait for a task's end, on channel pawl_finished, at most once in 3 ms. Waiters look again for a
--   while after each wake-up, since an announcement may be suppressed by an earlier one.
-- called by: settle_results, finish_counted_tasks, end_tasks.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.announce_finished() returns void language plpgsql as $$
declare
  at_ms bigint := (extract(epoch from clock_timestamp()) * 1000)::bigint;
begin
  if at_ms - coalesce(pg_sequence_last_value('pawl_queues.announced_finished'), 0) between 0 and 2
    or not (select s.announce from pawl.engine_settings s) then
    return;
  end if;
  perform setval('pawl_queues.announced_finished', at_ms);
  perform pg_notify('pawl_finished', '');
end $$;
