-- does: refuses an illegal transition of a step or a wrong revision, whoever tries, and writes the audit rows. A row that
--   makes two transitions in one update (via) gets two audit rows. A delivery that begins again (in_progress to in_progress
--   with a new revision) is audited too.
-- called by: statement triggers on pawl.steps (sql/triggers/guards.sql).
-- locks: nothing.
-- raises: PW001.
-- The two row sets are joined in full and compared with "is distinct from": such a join can never be a nested loop, and
-- its plan is cached from the first, perhaps tiny, statement.
create or replace function pawl.guard_steps() returns trigger language plpgsql as $$
declare
  acting text := nullif(current_setting('pawl.actor', true), '');
  working text := nullif(current_setting('pawl.processor', true), '');
  because text := nullif(current_setting('pawl.reason', true), '');
begin
  insert into pawl.audit (task_id, step, index, from_state, to_state, event, revision, attempt, delivery, processor, actor,
    reason, at)
  select j.task_id, j.step, j.index, j.moves->(j.hop - 1)->>0, j.moves->(j.hop - 1)->>1,
    case when j.revision = j.was + jsonb_array_length(j.moves) then j.moves->(j.hop - 1)->>2
      else pawl.refuse_transition('step', j.task_id || '/' || j.step, j.from_state, j.to_state, j.was, j.revision) end,
    j.was + j.hop, j.attempt, j.deliveries, j.worker, acting, case when j.was + j.hop = j.revision then j.reason end, j.state_since
  from (
    select coalesce(n.task_id, o.task_id) as task_id, coalesce(n.step, o.step) as step, n.index, o.state::text as from_state,
      n.state::text as to_state, o.revision as was, n.revision, n.attempt, n.deliveries, n.state_since,
      coalesce(n.worker, o.worker, working) as worker,
      coalesce(because, case when n.error is distinct from o.error then n.error->>'type' end) as reason,
      coalesce(pawl.legal_moves('step')->(o.state || '>' || n.state),
        case when acting is not null then pawl.legal_moves('step')->('!' || o.state || '>' || n.state) end) as moves,
      generate_series(1, greatest(n.revision - o.revision, 1)) as hop
    from new_rows n
    full join old_rows o on o.task_id = n.task_id and o.step = n.step and o.index = n.index
    where n.state is distinct from o.state or n.revision is distinct from o.revision) j;
  return null;
end $$;
