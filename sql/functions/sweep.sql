-- does: one small batch of retention: finished tasks whose time is over, expired identities, old dead letters, absorbed
--   messages, audit, operations, repairs, reports, processors. Goes over tasks, identities and step keys by their primary keys,
--   without an index of their own: give the cursor of the answer to the next call until more is false. Returns {tasks, steps,
--   identities, step_keys, old, cursor, more}.
-- called by: every orchestrator now and then; no leader, two share the work.
-- locks: what it deletes, skip locked: it never waits and holds up nobody.
-- raises: nothing.
create or replace function pawl.sweep(quantity int default 500, processor text default null, cursor jsonb default '{}')
returns jsonb language plpgsql set jit = off as $$
declare
  tasks record;
  identities record;
  keys record;
  old int := 0;
  again boolean;
begin
  -- null in a cursor: that table's end was reached.
  cursor := '{"task": "00000000-0000-0000-0000-000000000000", "scope": "", "key": "", "step_scope": "", "step_key": ""}' || coalesce(cursor, '{}');
  tasks := pawl.sweep_tasks(case when cursor->>'task' is null then 0 else quantity end, (cursor->>'task')::uuid);
  identities := pawl.sweep_identities(case when cursor->>'scope' is null then 0 else quantity end, cursor->>'scope', cursor->>'key');
  keys := pawl.sweep_step_identities(case when cursor->>'step_scope' is null then 0 else quantity end,
    cursor->>'step_scope', cursor->>'step_key');
  if cursor->'old' is distinct from 'null' then
    old := pawl.sweep_records(quantity * 10);
  end if;
  again := old >= quantity * 10;
  return jsonb_build_object('tasks', tasks.deleted, 'steps', tasks.steps, 'identities', identities.deleted, 'step_keys', keys.deleted,
    'old', old, 'cursor', jsonb_build_object('task', tasks.last, 'scope', identities.last_scope, 'key', identities.last_key,
      'step_scope', keys.last_scope, 'step_key', keys.last_key, 'old', case when again then true end),
    'more', tasks.last is not null or identities.last_scope is not null or keys.last_scope is not null or again);
end $$;
