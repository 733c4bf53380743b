-- does: refuses an illegal transition of a step or a wrong revision, whoever tries, and writes the audit rows. A delivery
--   that begins again (in_progress to in_progress with a new revision) is audited too.
-- called by: statement triggers on pawl.steps (sql/triggers/steps.sql).
-- locks: nothing.
-- raises: PW001.
-- The join of the two row sets must never be a nested loop: its plan is cached from the first, perhaps tiny, statement.
create or replace function pawl.guard_steps() returns trigger language plpgsql set enable_nestloop = off as $$
declare
  acting text := nullif(current_setting('pawl.actor', true), '');
  working text := nullif(current_setting('pawl.processor', true), '');
  because text := nullif(current_setting('pawl.reason', true), '');
begin
  with judged as materialized (
    select n.task_id, n.step, n.index, o.state::text as from_state, n.state::text as to_state, n.revision, n.attempt,
      n.deliveries, l.via_state, n.state_since, coalesce(n.worker, o.worker, working) as worker,
      coalesce(because, case when n.error is distinct from o.error then n.error->>'type' end) as reason,
      case when l.event is null or n.revision <> o.revision + l.hops or (l.operator_only and acting is null)
        then pawl.refuse_transition('step', n.task_id || '/' || n.step, o.state::text, n.state::text, o.revision, n.revision)
        else l.event end as event
    from new_rows n
    join old_rows o on o.task_id = n.task_id and o.step = n.step and o.index = n.index
    left join pawl.legal_transitions l
      on l.entity = 'step' and l.from_state = o.state::text and l.to_state = n.state::text
    where n.state <> o.state or n.revision <> o.revision)
  insert into pawl.audit (task_id, step, index, from_state, to_state, event, revision, attempt, delivery, processor, actor,
    reason, at)
  select j.task_id, j.step, j.index, j.from_state, j.via_state,
    (select l.event from pawl.legal_transitions l where l.entity = 'step' and l.from_state = j.from_state and l.to_state = j.via_state),
    j.revision - 1, j.attempt, j.deliveries,
    j.worker, acting, null, j.state_since
  from judged j where j.via_state is not null
  union all
  select j.task_id, j.step, j.index, coalesce(j.via_state, j.from_state), j.to_state, j.event, j.revision, j.attempt,
    j.deliveries, j.worker, acting, j.reason, j.state_since
  from judged j;
  return null;
end $$;
