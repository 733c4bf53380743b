-- does: tells the engine's time; the one clock of every state change. Tests replace it.
-- called by: every function that needs the time, once each.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.now() returns timestamptz language sql volatile as 'select clock_timestamp()';
