-- does: tells as whom the caller asks: the session's user, or the role it has set, also within functions that run with the
--   owner's rights.
-- called by: may_work, check_entity.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.asking_role() returns text language sql stable as $$
  select case current_setting('role') when 'none' then session_user::text else current_setting('role') end
$$;
