-- does: says that a process ends on purpose.
-- called by: orchestrators and workers, last.
-- locks: its own row.
-- raises: nothing.
create or replace function pawl.stop_processor(processor_id uuid) returns void language sql as $$
  update pawl.processors p set stopped_at = pawl.now() where p.processor_id = $1
$$;
