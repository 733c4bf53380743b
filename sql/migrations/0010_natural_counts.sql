-- One constraint for all counts of a row: Postgres reads and prepares each anew in every statement that writes the table, which was
-- a twelfth of what a step costs that comes alone. One of the integers is negative exactly when their "or" is.
alter table pawl.tasks drop constraint tasks_open_count_check, drop constraint tasks_active_count_check,
  drop constraint tasks_held_count_check, drop constraint tasks_retrying_count_check, drop constraint tasks_waiting_count_check,
  drop constraint tasks_failed_count_check, add constraint counts_are_natural
  check ((open_count | active_count | held_count | retrying_count | waiting_count | failed_count) >= 0);
alter table pawl.steps drop constraint steps_attempt_check, drop constraint steps_deliveries_check, drop constraint steps_failures_check,
  drop constraint steps_needs_open_check, add constraint counts_are_natural check ((attempt | deliveries | failures | needs_open) >= 0);
