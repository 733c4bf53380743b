-- does: raises PW021 for a command that is not possible in the present state.
-- called by: operator functions.
-- locks: nothing.
-- raises: PW021, always.
create or replace function pawl.refuse_command(what text, hint text) returns void language plpgsql as $$
begin
  raise exception '%', what using errcode = 'PW021', hint = hint;
end $$;
