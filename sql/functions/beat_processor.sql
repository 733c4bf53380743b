-- does: says that a process is alive; the first beat makes it known. For people and audit only: nobody asks a processor's
--   row for permission to act.
-- called by: orchestrators and workers, on a connection of their own.
-- locks: its own row.
-- raises: nothing.
create or replace function pawl.beat_processor(processor_id uuid, kind text, host text, pid int, version text) returns void
language sql as $$
  insert into pawl.processors (processor_id, kind, host, pid, version, started_at, heartbeat_at)
  values (processor_id, kind, host, pid, version, pawl.now(), pawl.now())
  on conflict on constraint processors_pkey do update set heartbeat_at = excluded.heartbeat_at, stopped_at = null
$$;
