-- does: the first state that a column of the user's cannot hold as it is written: too long, or no value of its type.
-- called by: check_entity.
-- locks: nothing.
-- raises: what says nothing about the state: timeouts, a lack of resources.
create or replace function pawl.unfit_state(place regclass, status_column text, states text[]) returns text language plpgsql as $$
declare
  kind text := (select format_type(a.atttypid, a.atttypmod) from pg_attribute a where a.attrelid = place and a.attname = status_column
    and not a.attisdropped);
  state text;
  kept text;
begin
  foreach state in array states loop
    begin
      execute format('select $1::%s::text', kind) into kept using state;
    exception when others then
      if pawl.concerns_all(sqlstate) then
        raise;
      end if;
      return state;
    end;
    if kept is distinct from state then
      return state;
    end if;
  end loop;
  return null;
end $$;
