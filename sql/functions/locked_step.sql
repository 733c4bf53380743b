-- does: gives one step of a locked task for an operator's command, and refuses one whose body runs under an entity claim:
--   only its report or its module's janitor may end that.
-- called by: retry_step, resolve_step, complete_step.
-- locks: nothing more: the task and its steps are locked.
-- raises: PW020 for an unknown step, PW021 under an entity claim.
create or replace function pawl.locked_step(id uuid, name text, place int) returns pawl.steps language plpgsql as $$
declare
  one pawl.steps;
begin
  select * into one from pawl.steps s where s.task_id = id and s.step = name and s.index = place;
  if not found then
    raise exception 'task % has no step % (index %)', id, quote_nullable(left(name, 100)), place using errcode = 'PW020',
      hint = 'Its steps: ' || coalesce((select string_agg(n.step, ', ') from (select s.step from pawl.steps s
        where s.task_id = id order by s.step limit 20) n), 'none yet');
  end if;
  perform pawl.refuse_claimed(array[(one.task_id, one.step, one.index)::pawl.step_ref]);
  return one;
end $$;
