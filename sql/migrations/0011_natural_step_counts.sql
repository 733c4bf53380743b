-- Those of steps, for the same reasons. A database that took 0010 when it did both has them.
do $$
begin
  if not exists (select from pg_constraint c where c.conrelid = 'pawl.steps'::regclass and c.conname = 'counts_are_natural') then
    alter table pawl.steps drop constraint steps_attempt_check, drop constraint steps_deliveries_check,
      drop constraint steps_failures_check, drop constraint steps_needs_open_check,
      add constraint counts_are_natural check ((attempt | deliveries | failures | needs_open) >= 0) not valid;
  end if;
end $$;
