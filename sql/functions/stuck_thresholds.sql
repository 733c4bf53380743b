-- does: reads thresholds for stuck work as configuration writes them, {state: duration}, and gives them in milliseconds.
-- called by: configure_template.
-- locks: nothing.
-- raises: PW024 for a state that is not an open state of a task, or a bad duration.
create or replace function pawl.stuck_thresholds(given jsonb) returns jsonb language plpgsql stable as $$
declare
  one record;
  read jsonb := '{}';
begin
  if given is null or given = 'null' then
    return null;
  elsif jsonb_typeof(given) <> 'object' then
    perform pawl.refuse_setting('stuck_after', 'an object such as {"waiting_for_retry": "1h"}');
  end if;
  for one in select * from jsonb_each_text(given) e(state, duration) loop
    if not exists (select from unnest(enum_range(null::pawl.task_state)) s where s::text = one.state and not pawl.is_final(s)) then
      perform pawl.refuse_setting('stuck_after: ' || quote_literal(left(one.state, 80)), 'an open state of a task');
    end if;
    read := read || jsonb_build_object(one.state, extract(epoch from pawl.parse_duration(coalesce(one.duration, ''))) * 1000);
  end loop;
  return read;
end $$;
