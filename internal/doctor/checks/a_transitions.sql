-- Transitions and the audit. The audit of tasks that are older than audit_retention may have lost its beginning: what asks
-- for a beginning does not ask them.

-- A1 always: every audited transition is a legal one, with its event.
--   Differs: a step begins pending without a row; its first row leaves pending.
select a.task_id || coalesce('/' || a.step, ''), format('%s -> %s (%s), revision %s', coalesce(a.from_state, 'nothing'), a.to_state, a.event, a.revision)
from pawl.audit a
where not exists (select from pawl.legal_transitions l
  where l.entity = case when a.step is null then 'task' else 'step' end and l.from_state = coalesce(a.from_state, '')
    and l.to_state = a.to_state and l.event = a.event and l.hops = 1 and (a.actor is not null or not l.operator_only));

-- A2 always: the transitions of a task or step form a path, from nothing (a task) or pending (a step).
select p.task_id || coalesce('/' || p.step, ''), format('revision %s leaves %s, but the one before reached %s', p.revision, p.from_state, p.before)
from (select a.*, lag(a.to_state) over w as before, row_number() over w as place
  from pawl.audit a window w as (partition by a.task_id, a.step, a.index order by a.revision)) p
where (p.place > 1 and p.from_state is distinct from p.before)
  or (p.place = 1 and p.revision = 1 and p.from_state is distinct from case when p.step is not null then 'pending' end);

-- A3 always: the revisions of a task or step are dense: no compare-and-swap is lost, none counts twice.
select a.task_id || coalesce('/' || a.step, ''), format('%s rows for the revisions %s to %s', count(*), min(a.revision), max(a.revision))
from pawl.audit a left join pawl.tasks t on t.task_id = a.task_id
group by a.task_id, a.step, a.index, t.requested_at
having count(*) <> max(a.revision) - min(a.revision) + 1 or count(distinct a.revision) <> count(*)
  or (min(a.revision) > 1 and t.requested_at > pawl.now() - (select e.audit_retention from pawl.engine_settings e));

-- A4 always: a task or step is where its last audit row says.
--   Differs: a step that never moved has no row and revision 0; rows swept after audit_retention are not missed.
with now_is as (
  select t.task_id, null::text as step, null::int as index, t.state::text as state, t.revision, t.requested_at as since from pawl.tasks t
  union all
  select s.task_id, s.step, s.index, s.state::text, s.revision, s.state_since from pawl.steps s),
last_row as (
  select distinct on (a.task_id, a.step, a.index) a.task_id, a.step, a.index, a.to_state, a.revision
  from pawl.audit a order by a.task_id, a.step, a.index, a.revision desc)
select n.task_id || coalesce('/' || n.step, ''), format('is %s (revision %s), its audit ends with %s (revision %s)', n.state, n.revision,
  coalesce(l.to_state, 'nothing'), coalesce(l.revision, 0))
from now_is n left join last_row l on l.task_id = n.task_id and coalesce(l.step, '') = coalesce(n.step, '')
  and coalesce(l.index, 0) = coalesce(n.index, 0)
where case when l.task_id is null then not (n.step is not null and n.revision = 0 and n.state = 'pending')
    and n.since > pawl.now() - (select e.audit_retention from pawl.engine_settings e)
  else (l.to_state, l.revision) is distinct from (n.state, n.revision) end;

-- A5 always: nothing leaves a final state except by an operator's word.
select a.task_id || coalesce('/' || a.step, ''), format('%s -> %s, revision %s, without an actor', a.from_state, a.to_state, a.revision)
from pawl.audit a
where a.actor is null and case when a.step is null
  then a.from_state in ('complete', 'error', 'cancelled', 'timed_out', 'resolved_manually')
  else a.from_state in ('complete', 'skipped', 'error', 'cancelled', 'resolved_manually') end;

-- A6 always: a task completes at most once, and nothing follows.
--   Differs: other final states may be left by an operator and reached again (A5).
select a.task_id::text, format('%s transitions to complete, %s from it', count(*) filter (where a.to_state = 'complete'),
  count(*) filter (where a.from_state = 'complete'))
from pawl.audit a where a.step is null
group by a.task_id having count(*) filter (where a.to_state = 'complete') > 1 or count(*) filter (where a.from_state = 'complete') > 0;

-- A7 always: the audit knows no state that the types do not have.
select a.task_id || coalesce('/' || a.step, ''), format('%s -> %s', a.from_state, a.to_state)
from pawl.audit a
where exists (select from (values (a.from_state), (a.to_state)) v(state) where v.state is not null and v.state <> all (
  case when a.step is null then enum_range(null::pawl.task_state)::text[] else enum_range(null::pawl.step_state)::text[] end));

-- A8 always: a transaction's transitions of one task or step follow each other: nobody moves it in between.
--   Differs: the audit has no sequence of its own, and neither times nor transaction ids are in the order of the revisions,
--   because a transaction that waited for the row is older than the one it waited for.
select p.task_id || coalesce('/' || p.step, ''), format('transaction %s comes back at revision %s', p.xid, p.revision)
from (select a.*, lag(a.xid) over (partition by a.task_id, a.step, a.index order by a.revision) as before,
    min(a.revision) over (partition by a.task_id, a.step, a.index, a.xid) as first
  from pawl.audit a) p
where p.revision > p.first and p.before <> p.xid;
