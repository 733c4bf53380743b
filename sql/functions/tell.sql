-- does: notifies a channel, at most once in 3 ms. The time of the last notification stands in a sequence: no lock, no dead
--   row, and no transaction can hold it back. What was suppressed is found because consumers look again for a while after a
--   notification and after they emptied a queue.
-- called by: announce, announce_finished, report_and_claim_steps; engine_settings.announce switches it off.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.tell(channel text, mark regclass) returns void language plpgsql as $$
declare
  at_ms bigint := (extract(epoch from clock_timestamp()) * 1000)::bigint;
begin
  if at_ms - coalesce(pg_sequence_last_value(mark), 0) between 0 and 2
    or not (select s.announce from pawl.engine_settings s) then
    return;
  end if;
  perform setval(mark, at_ms);
  perform pg_notify(channel, '');
end $$;
