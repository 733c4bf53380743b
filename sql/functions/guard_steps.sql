-- does: refuses an illegal transition of a step or a wrong revision, whoever tries, and writes the audit rows. A row that
--   makes two transitions in one update (via) gets two audit rows. A delivery that begins again (in_progress to in_progress
--   with a new revision) is audited too. An attempt that failed has its error's type and message (300 characters) as reason.
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
  select j.task_id, j.step, j.index, case j.hop when 1 then j.from_state else split_part(j.move, '|', 2) end,
    case when j.was + j.hop = j.revision then j.to_state else split_part(j.move, '|', 2) end,
    coalesce(case when j.revision = j.was + case strpos(j.move, '|') when 0 then 1 else 2 end then split_part(j.move, '|', 2 * j.hop - 1) end,
      pawl.refuse_transition('step', j.task_id || '/' || j.step, j.from_state, j.to_state, j.was, j.revision)),
    j.was + j.hop, j.attempt, j.deliveries, j.worker, acting, case when j.was + j.hop = j.revision then j.reason end, j.state_since
  from (
    select m.*, generate_series(1, greatest(m.revision - m.was, 1)) as hop,
      coalesce(pawl.legal_moves('step')->>(m.from_state || '>' || m.to_state),
        case when acting is not null then pawl.legal_moves('step')->>('!' || m.from_state || '>' || m.to_state) end) as move
    from (
      select coalesce(n.task_id, o.task_id) as task_id, coalesce(n.step, o.step) as step, n.index, o.state::text as from_state,
        n.state::text as to_state, o.revision as was, n.revision, n.attempt, n.deliveries, n.state_since,
        coalesce(n.worker, o.worker, working) as worker,
        coalesce(because, case when n.state in ('error', 'waiting_for_retry') or n.error is distinct from o.error
          then concat_ws(': ', n.error->>'type', left(n.error->>'message', 300)) end) as reason
      from new_rows n
      full join old_rows o on o.task_id = n.task_id and o.step = n.step and o.index = n.index
      where n.state is distinct from o.state or n.revision is distinct from o.revision offset 0) m) j;
  return null;
end $$;
