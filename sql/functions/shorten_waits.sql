-- does: lets a statement that has run for a second wait a thousandth for each lock from here to the end of the function that
--   sets lock_timeout: with many rows behind one lock the batch is not to end with its timeout.
-- called by: lock_entity, move_entity.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.shorten_waits() returns void language plpgsql as $$
begin
  if clock_timestamp() - statement_timestamp() > interval '1 s' then
    perform set_config('lock_timeout', '1ms', true);
  end if;
end $$;
