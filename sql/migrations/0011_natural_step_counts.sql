alter table pawl.steps drop constraint steps_attempt_check, drop constraint steps_deliveries_check, drop constraint steps_failures_check,
  drop constraint steps_needs_open_check,
  add constraint counts_are_natural check ((attempt | deliveries | failures | needs_open) >= 0) not valid;
