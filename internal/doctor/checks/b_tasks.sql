-- Tasks, their steps and their counters.

-- B1 always: a complete task has all its steps, each complete, skipped or resolved.
select t.task_id::text, format('is complete with %s of %s steps complete', n.good, p.step_count)
from pawl.tasks t join pawl.templates p on p.template_id = t.template_id
cross join lateral (select count(*) filter (where s.state in ('complete', 'skipped', 'resolved_manually')) as good, count(*) as all_of_them
  from pawl.steps s where s.task_id = t.task_id) n
where t.state = 'complete' and (n.good < p.step_count or n.good < n.all_of_them);

-- B2 rest: a task whose steps have all ended has ended: complete if and only if its steps are (with B1).
--   Differs: on_failure hold keeps a task with a failed step open for a person.
select t.task_id::text, format('is %s, and no step of it is open', t.state)
from pawl.tasks t join pawl.templates p on p.template_id = t.template_id
where not pawl.is_final(t.state) and t.state not in ('pending', 'initializing') and t.state_since < pawl.now() - :grace
  and not exists (select from pawl.steps s where s.task_id = t.task_id
    and s.state in ('pending', 'enqueued', 'in_progress', 'waiting_for_retry', 'waiting'))
  and not (p.on_failure = 'hold' and exists (select from pawl.steps s where s.task_id = t.task_id and s.state in ('error', 'cancelled')));

-- B3 always: a task that ended in error has a step that failed.
select t.task_id::text, 'is in error without a failed step'
from pawl.tasks t
where t.state = 'error' and not exists (select from pawl.steps s where s.task_id = t.task_id and s.state in ('error', 'cancelled'));

-- B4 always: an ended task has no open step.
--   Differs: a step under an entity claim runs on until its report or a janitor ends it, and its result may be on its way;
--   one that was handed back ends when its message is read.
select s.task_id || '/' || s.step, format('is %s in a task that is %s', s.state, t.state)
from pawl.tasks t join pawl.steps s on s.task_id = t.task_id
where pawl.is_final(t.state) and s.state in ('pending', 'enqueued', 'in_progress', 'waiting_for_retry', 'waiting')
  and not (s.state = 'in_progress' and (exists (select from pawl.entity_claims c
      where c.task_id = s.task_id and c.step = s.step and c.index = s.index)
    or exists (select from messages m where m.queue = 'orchestration_step_results' and m.task_id = s.task_id and m.step = s.step
      and m.index = s.index and m.attempt = s.attempt)
    or exists (select from messages m join pawl.template_steps ts on ts.template_id = s.template_id and ts.step = s.step and ts.claim is not null
      where m.queue = s.queue and m.task_id = s.task_id and m.step = s.step and m.index = s.index and m.attempt = s.attempt)));

-- B5 always: a step has begun only when all it needs was there.
--   Differs: read from the states, because times are not ordered (A8); a step that a person ended needs nothing.
select s.task_id || '/' || s.step, format('is %s, but needs %s, which is %s', s.state, e.parent, f.state)
from pawl.steps s
join pawl.template_edges e on e.template_id = s.template_id and e.child = s.step
join pawl.steps f on f.task_id = s.task_id and f.step = e.parent and f.index = 0
where s.state in ('enqueued', 'in_progress', 'waiting_for_retry', 'waiting', 'complete', 'error')
  and not (f.state in ('complete', 'resolved_manually') or (f.state = 'skipped' and e.accepts_skipped))
  and not (s.state in ('complete', 'error') and exists (select from pawl.audit a where a.task_id = s.task_id and a.step = s.step
    and a.index = s.index and a.revision = s.revision and a.actor is not null));

-- B6 always: the steps of a task are steps of its template.
select s.task_id || '/' || s.step, format('of template %s in a task of template %s', s.template_id, coalesce(t.template_id::text, 'that is gone'))
from pawl.steps s left join pawl.tasks t on t.task_id = s.task_id
where t.template_id is distinct from s.template_id
  or not exists (select from pawl.template_steps ts where ts.template_id = s.template_id and ts.step = s.step);

-- B7 always: a task that runs has all its steps.
select t.task_id::text, format('is %s with %s of %s steps', t.state, n.built, p.step_count)
from pawl.tasks t join pawl.templates p on p.template_id = t.template_id
cross join lateral (select count(*) as built from pawl.steps s where s.task_id = t.task_id and s.index = 0) n
where not pawl.is_final(t.state) and t.state not in ('pending', 'initializing') and n.built <> p.step_count;

-- B8 always: finalized_at is set if and only if the state is final.
select t.task_id::text, format('is %s, finalized_at %s', t.state, coalesce(t.finalized_at::text, 'is null'))
from pawl.tasks t where (t.finalized_at is not null) <> pawl.is_final(t.state);

-- B9 always: the dependencies of a template have no cycle.
--   Differs: by the positions: each step comes after what it needs.
select p.namespace || '/' || p.name || '@' || p.version, format('%s needs %s', e.child, e.parent)
from pawl.template_edges e
join pawl.templates p on p.template_id = e.template_id
left join pawl.template_steps f on f.template_id = e.template_id and f.step = e.parent
left join pawl.template_steps c on c.template_id = e.template_id and c.step = e.child
where (f.position < c.position) is not true;

-- B10 always: a running task's counters of open, retrying, waiting and failed steps are true.
select t.task_id::text, format('counts %s, its steps are %s (open, retrying, waiting, failed)',
  (t.open_count, t.retrying_count, t.waiting_count, t.failed_count), (n.open, n.retrying, n.waiting, n.failed))
from pawl.tasks t
cross join lateral (select count(*) filter (where s.state in ('pending', 'enqueued', 'in_progress', 'waiting_for_retry', 'waiting')) as open,
    count(*) filter (where s.state = 'waiting_for_retry') as retrying, count(*) filter (where s.state = 'waiting') as waiting,
    count(*) filter (where s.state in ('error', 'cancelled')) as failed
  from pawl.steps s where s.task_id = t.task_id) n
where not pawl.is_final(t.state) and t.state not in ('pending', 'initializing')
  and (t.open_count, t.retrying_count, t.waiting_count, t.failed_count) is distinct from (n.open, n.retrying, n.waiting, n.failed);

-- B11 rest: a running task's counters of active and held steps are true.
--   Only at rest: in staged mode what is ready counts as active from the transaction that readied it.
select t.task_id::text, format('counts %s, its steps are %s (active, held)', (t.active_count, t.held_count), (n.active, n.held))
from pawl.tasks t
cross join lateral (select count(*) filter (where s.state in ('enqueued', 'in_progress')) as active,
    count(*) filter (where s.state = 'pending' and s.needs_open = 0) as held
  from pawl.steps s where s.task_id = t.task_id) n
where not pawl.is_final(t.state) and t.state not in ('pending', 'initializing') and t.state_since < pawl.now() - :grace
  and (t.active_count, t.held_count) is distinct from (n.active, n.held);

-- B12 rest: a running task's state follows from its counters.
select t.task_id::text, format('is %s', t.state)
from pawl.tasks t join pawl.templates p on p.template_id = t.template_id
where not pawl.is_final(t.state) and t.state not in ('pending', 'initializing') and t.state_since < pawl.now() - :grace
  and t.state <> case when p.on_failure = 'hold' and t.failed_count > 0
      and t.active_count + t.held_count + t.retrying_count + t.waiting_count = 0 then 'blocked_by_failures'
    else pawl.open_state(t.open_count, t.active_count, t.held_count, t.retrying_count, t.waiting_count, t.failed_count) end;

-- B13 always: a pending step knows how many needed steps it still waits for.
select s.task_id || '/' || s.step, format('waits for %s needed steps, %s are missing', s.needs_open, n.missing)
from pawl.steps s join pawl.tasks t on t.task_id = s.task_id
cross join lateral (select count(*) as missing
  from pawl.template_edges e join pawl.steps f on f.task_id = s.task_id and f.step = e.parent and f.index = 0
  where e.template_id = s.template_id and e.child = s.step
    and not (f.state in ('complete', 'resolved_manually') or (f.state = 'skipped' and e.accepts_skipped))) n
where s.state = 'pending' and not pawl.is_final(t.state) and t.state not in ('pending', 'initializing') and s.needs_open <> n.missing;
