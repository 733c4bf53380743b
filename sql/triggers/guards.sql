-- The guards of pawl.tasks and pawl.steps: legal transitions, revisions, audit.
do $$
declare
  missing text;
begin
  foreach missing in array array_remove(array[
    pawl.missing_trigger('pawl.tasks', 'create trigger guard_update after update on pawl.tasks
      referencing old table as old_rows new table as new_rows for each statement execute function pawl.guard_tasks()'),
    pawl.missing_trigger('pawl.tasks', 'create trigger guard_insert after insert on pawl.tasks
      referencing new table as new_rows for each statement execute function pawl.guard_new_tasks()'),
    pawl.missing_trigger('pawl.steps', 'create trigger guard_update after update on pawl.steps
      referencing old table as old_rows new table as new_rows for each statement execute function pawl.guard_steps()'),
    pawl.missing_trigger('pawl.steps', 'create trigger guard_insert after insert on pawl.steps
      referencing new table as new_rows for each statement execute function pawl.guard_new_steps()')], null)
  loop
    execute missing;
  end loop;
end $$;
