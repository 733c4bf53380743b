-- does: raises PW024 for a setting or filter that is not what it should be.
-- called by: functions that take settings or filters as jsonb.
-- locks: nothing.
-- raises: PW024, always.
create or replace function pawl.refuse_setting(name text, wanted text) returns void language plpgsql as $$
begin
  raise exception '% is not valid', name using errcode = 'PW024', hint = 'Give ' || wanted || '.';
end $$;
