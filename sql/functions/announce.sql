-- does: tells listeners that a queue has new messages, on PGMQ's own channel name. While report_and_claim_steps keeps a queue
--   quiet it only notes that there are some.
-- called by: the statement trigger on every queue table that Pawl knows.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.announce() returns trigger language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  if current_setting('pawl.quiet', true) = tg_table_name then
    perform set_config('pawl.quiet', tg_table_name || ' kept', true);
  elsif current_setting('pawl.quiet', true) is distinct from tg_table_name || ' kept' then
    perform pawl.tell('pgmq.' || tg_table_name || '.INSERT', tg_argv[0]::regclass);
  end if;
  return null;
end $$;
