-- does: refuses a task created in a state it may not begin in, and writes the audit row of its creation.
-- called by: statement trigger on pawl.tasks (sql/triggers/guards.sql).
-- locks: nothing.
-- raises: PW001.
create or replace function pawl.guard_new_tasks() returns trigger language plpgsql as $$
declare
  acting text := nullif(current_setting('pawl.actor', true), '');
  working text := nullif(current_setting('pawl.processor', true), '');
begin
  insert into pawl.audit (task_id, to_state, event, revision, processor, actor, at)
  select n.task_id, n.state::text,
    coalesce(case n.revision when 1 then pawl.legal_moves('task')->>('>' || n.state) end,
      pawl.refuse_transition('task', n.task_id::text, '', n.state::text, 0, n.revision)),
    n.revision, working, acting, n.state_since
  from new_rows n;
  return null;
end $$;
