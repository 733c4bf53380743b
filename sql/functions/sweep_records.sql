-- does: deletes what has outlived its retention in engine_settings among dead letters, absorbed messages, audit, operations,
--   repairs and reports; processors that were not heard of for a week. Oldest first. Returns the most rows that one table gave.
-- called by: sweep.
-- locks: those rows, skip locked.
-- raises: nothing.
create or replace function pawl.sweep_records(quantity int) returns int language plpgsql as $$
declare
  moment timestamptz := pawl.now();
  settings pawl.engine_settings;
  kind record;
  gone int;
  most int := 0;
begin
  select * into settings from pawl.engine_settings;
  for kind in select * from (values
    ('dead_letters', 'dead_letter_id', 'dead_at', settings.dead_letter_retention),
    ('absorbed', 'absorbed_id', 'absorbed_at', settings.absorbed_retention),
    ('operations', 'operation_id', 'at', settings.operation_retention),
    ('repairs', 'repair_id', 'at', settings.operation_retention),
    ('stuck_reports', 'report_id', 'reported_at', settings.operation_retention)) k(name, id, time, keep)
  loop
    -- Ids grow with time: what is due is among the first.
    execute format('delete from pawl.%1$I where %2$I = any (array(select l.%2$I from (select %2$I, %3$I from pawl.%1$I
        order by %2$I limit $1) f join pawl.%1$I l using (%2$I) where f.%3$I < $2 for update of l skip locked))',
      kind.name, kind.id, kind.time) using quantity, moment - kind.keep;
    get diagnostics gone = row_count;
    most := greatest(most, gone);
  end loop;
  delete from pawl.audit a where a.ctid = any (array(
    select l.ctid from pawl.audit l where l.at < moment - settings.audit_retention limit quantity for update skip locked));
  get diagnostics gone = row_count;
  delete from pawl.processors p where p.processor_id in (select l.processor_id from pawl.processors l
    where l.heartbeat_at < moment - interval '7 days' limit quantity for update skip locked);
  return greatest(most, gone);
end $$;
