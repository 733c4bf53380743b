-- does: refuses an illegal transition of a task or a wrong revision, whoever tries, and writes the audit rows. A row that
--   makes two transitions in one update (via) gets two audit rows.
-- called by: statement triggers on pawl.tasks (sql/triggers/tasks.sql).
-- locks: nothing.
-- raises: PW001.
-- The join of the two row sets must never be a nested loop: its plan is cached from the first, perhaps tiny, statement.
create or replace function pawl.guard_tasks() returns trigger language plpgsql set enable_nestloop = off as $$
declare
  acting text := nullif(current_setting('pawl.actor', true), '');
  working text := nullif(current_setting('pawl.processor', true), '');
  because text := nullif(current_setting('pawl.reason', true), '');
begin
  with judged as materialized (
    select n.task_id, o.state::text as from_state, n.state::text as to_state, n.revision, l.via_state, n.state_since,
      coalesce(because, case when n.error is distinct from o.error then n.error->>'type' end) as reason,
      case when l.event is null or n.revision <> o.revision + l.hops or (l.operator_only and acting is null)
        then pawl.refuse_transition('task', n.task_id::text, o.state::text, n.state::text, o.revision, n.revision)
        else l.event end as event
    from new_rows n
    join old_rows o on o.task_id = n.task_id
    left join pawl.legal_transitions l
      on l.entity = 'task' and l.from_state = o.state::text and l.to_state = n.state::text
    where n.state <> o.state or n.revision <> o.revision)
  insert into pawl.audit (task_id, from_state, to_state, event, revision, processor, actor, reason, at)
  select j.task_id, j.from_state, j.via_state,
    (select l.event from pawl.legal_transitions l where l.entity = 'task' and l.from_state = j.from_state and l.to_state = j.via_state),
    j.revision - 1, working, acting, null, j.state_since
  from judged j where j.via_state is not null
  union all
  select j.task_id, coalesce(j.via_state, j.from_state), j.to_state, j.event, j.revision, working, acting, j.reason, j.state_since
  from judged j;
  return null;
end $$;
