-- One constraint for all counts of a row: Postgres reads and prepares each constraint anew in every statement that writes the table,
-- which all together was a twelfth of what a step costs that comes alone. One of the integers is negative exactly when
-- their "or" is. Not valid here and proved in a later piece, which lets others write: under one exclusive lock after another a claim
-- that holds steps and reads its task would end in a deadlock.
alter table pawl.tasks drop constraint tasks_open_count_check, drop constraint tasks_active_count_check,
  drop constraint tasks_held_count_check, drop constraint tasks_retrying_count_check, drop constraint tasks_waiting_count_check,
  drop constraint tasks_failed_count_check, add constraint counts_are_natural
  check ((open_count | active_count | held_count | retrying_count | waiting_count | failed_count) >= 0) not valid;
