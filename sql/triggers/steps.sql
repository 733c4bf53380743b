-- The guards of pawl.steps: legal transitions, revisions, audit.
select pawl.put_trigger('pawl.steps', 'create trigger guard_update after update on pawl.steps
  referencing old table as old_rows new table as new_rows for each statement execute function pawl.guard_steps()');
select pawl.put_trigger('pawl.steps', 'create trigger guard_insert after insert on pawl.steps
  referencing new table as new_rows for each statement execute function pawl.guard_new_steps()');
