-- does: refuses a step created in a state it may not begin in. Every step begins pending with revision 0, and that is
--   told by its task's audit row; a row inserted with revision 1 has made its first transition already, which is written.
-- called by: statement trigger on pawl.steps (sql/triggers/guards.sql).
-- locks: nothing.
-- raises: PW001.
create or replace function pawl.guard_new_steps() returns trigger language plpgsql as $$
declare
  acting text := nullif(current_setting('pawl.actor', true), '');
  working text := nullif(current_setting('pawl.processor', true), '');
begin
  insert into pawl.audit (task_id, step, index, from_state, to_state, event, revision, attempt, delivery, processor, actor, at)
  select n.task_id, n.step, n.index, 'pending', n.state::text,
    case when n.revision = 1 and strpos(pawl.legal_moves('step')->>('pending>' || n.state), '|') = 0
      then pawl.legal_moves('step')->>('pending>' || n.state)
      else pawl.refuse_transition('step', n.task_id || '/' || n.step, '', n.state::text, 0, n.revision) end,
    n.revision, n.attempt, n.deliveries, working, acting, n.state_since
  from new_rows n
  where n.state <> 'pending' or n.revision <> 0;
  return null;
end $$;
