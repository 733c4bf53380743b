-- does: a module's janitor says that it is there. The first word of a module sets templates free that were parked for the
--   lack of it.
-- called by: janitors, at start and with every round.
-- locks: the module's row.
-- raises: PW024 without a module.
create or replace function pawl.beat_janitor(module text, processor_id uuid default null) returns void language plpgsql set jit = off as $$
begin
  if coalesce(module, '') = '' then
    perform pawl.refuse_setting('module', 'the name of the module that the janitor answers for');
  end if;
  insert into pawl.janitors as j (module, processor_id, seen_at) values (module, processor_id, pawl.now())
  on conflict on constraint janitors_pkey do update set processor_id = excluded.processor_id, seen_at = excluded.seen_at;
  if exists (select from pawl.templates t where t.parked_reason like 'entity claims: %') then
    perform pawl.unpark_templates();
  end if;
end $$;
