-- does: refuses an illegal transition of a task or a wrong revision, whoever tries, and writes the audit rows. A row that
--   makes two transitions in one update (via) gets two audit rows.
-- called by: statement triggers on pawl.tasks (sql/triggers/guards.sql).
-- locks: nothing.
-- raises: PW001.
-- The join is as in guard_steps: never a nested loop.
create or replace function pawl.guard_tasks() returns trigger language plpgsql as $$
declare
  acting text := nullif(current_setting('pawl.actor', true), '');
  working text := nullif(current_setting('pawl.processor', true), '');
  because text := nullif(current_setting('pawl.reason', true), '');
begin
  insert into pawl.audit (task_id, from_state, to_state, event, revision, processor, actor, reason, at)
  select j.task_id, j.moves->(j.hop - 1)->>0, j.moves->(j.hop - 1)->>1,
    case when j.revision = j.was + jsonb_array_length(j.moves) then j.moves->(j.hop - 1)->>2
      else pawl.refuse_transition('task', j.task_id::text, j.from_state, j.to_state, j.was, j.revision) end,
    j.was + j.hop, working, acting, case when j.was + j.hop = j.revision then j.reason end, j.state_since
  from (
    select coalesce(n.task_id, o.task_id) as task_id, o.state::text as from_state, n.state::text as to_state,
      o.revision as was, n.revision, n.state_since,
      coalesce(because, case when n.error is distinct from o.error then n.error->>'type' end) as reason,
      coalesce(pawl.legal_moves('task')->(o.state || '>' || n.state),
        case when acting is not null then pawl.legal_moves('task')->('!' || o.state || '>' || n.state) end) as moves,
      generate_series(1, greatest(n.revision - o.revision, 1)) as hop
    from new_rows n
    full join old_rows o on o.task_id = n.task_id
    where n.state is distinct from o.state or n.revision is distinct from o.revision) j;
  return null;
end $$;
