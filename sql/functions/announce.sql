-- does: tells listeners that a queue has new messages, on PGMQ's own channel name, at most once in 3 ms per queue. The time
--   of the last announcement stands in a sequence: no lock, no dead row, and no transaction can hold it back. A message
--   whose announcement was suppressed is found because consumers look again for a while after they emptied a queue.
-- called by: the statement trigger on every queue table that Pawl knows; engine_settings.announce switches it off.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.announce() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  mark regclass := tg_argv[0]::regclass;
  at_ms bigint := (extract(epoch from clock_timestamp()) * 1000)::bigint;
begin
  if at_ms - coalesce(pg_sequence_last_value(mark), 0) between 0 and 2
    or not (select s.announce from pawl.engine_settings s) then
    return null;
  end if;
  perform setval(mark, at_ms);
  perform pg_notify('pgmq.' || tg_table_name || '.INSERT', '');
  return null;
end $$;
