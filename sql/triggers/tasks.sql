-- The guards of pawl.tasks: legal transitions, revisions, audit.
select pawl.put_trigger('pawl.tasks', 'create trigger guard_update after update on pawl.tasks
  referencing old table as old_rows new table as new_rows for each statement execute function pawl.guard_tasks()');
select pawl.put_trigger('pawl.tasks', 'create trigger guard_insert after insert on pawl.tasks
  referencing new table as new_rows for each statement execute function pawl.guard_new_tasks()');
