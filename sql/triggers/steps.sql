-- The guards of pawl.steps: legal transitions, revisions, audit.
create or replace trigger guard_update after update on pawl.steps
  referencing old table as old_rows new table as new_rows
  for each statement execute function pawl.guard_steps();
create or replace trigger guard_insert after insert on pawl.steps
  referencing new table as new_rows
  for each statement execute function pawl.guard_new_steps();
