-- Progress: every open state has an owner that will move it.

-- G1 always: an open task has something that moves it: a step under way, a retry, a gate, a wait, a message, a person.
--   Differs: always, not only at rest: the owner is committed with the state.
select t.task_id::text, format('is %s, and nothing will move it', t.state)
from pawl.tasks t
where not pawl.is_final(t.state) and t.state not in ('pending', 'blocked_by_failures')
  and not exists (select from pawl.steps s where s.task_id = t.task_id and s.state in ('enqueued', 'in_progress', 'waiting_for_retry', 'waiting'))
  and not exists (select from pawl.held_steps h where h.task_id = t.task_id and h.released_at is null)
  and not exists (select from messages m where m.task_id = t.task_id
    and m.queue in ('orchestration_step_enqueues', 'orchestration_task_finalizations'));

-- G2 always: a ready step stands behind a gate, or a message asks to start it.
select s.task_id || '/' || s.step, 'is ready, and nothing will start it'
from pawl.steps s join pawl.tasks t on t.task_id = s.task_id
where s.state = 'pending' and s.needs_open = 0 and not pawl.is_final(t.state) and t.state not in ('pending', 'initializing')
  and not exists (select from pawl.held_steps h where h.task_id = s.task_id and h.step = s.step and h.index = s.index
    and h.released_at is null)
  and not exists (select from messages m where m.task_id = s.task_id and m.queue = 'orchestration_step_enqueues');

-- G3 rest: no lease is over without anybody taking the step.
select s.task_id || '/' || s.step, format('attempt %s was left by %s at %s', s.attempt, s.worker, m.vt)
from pawl.steps s join messages m on m.queue = s.queue and m.task_id = s.task_id and m.step = s.step and m.index = s.index and m.attempt = s.attempt
where s.state = 'in_progress' and not m.paused and m.vt < clock_timestamp() - :grace;

-- G4 rest: what was due has been done.
select t.task_id::text, format('is %s, due since %s', t.state, t.due_at) from pawl.tasks t where t.due_at < pawl.now() - :grace
union all
select s.task_id || '/' || s.step, format('is %s, due since %s', s.state, s.due_at) from pawl.steps s where s.due_at < pawl.now() - :grace;

-- G5 always: a step that waits waits for a key or for a person.
select s.task_id || '/' || s.step, 'waits for nothing'
from pawl.steps s
where s.state = 'waiting' and s.error is null and not exists (select from pawl.step_key_waiters w
  where w.task_id = s.task_id and w.step = s.step and w.index = s.index);

-- G6 rest: a queue without a gate holds nothing back.
select h.task_id || '/' || h.step, format('is held by %s, which has no limit and is not paused', h.queue)
from pawl.held_steps h join pawl.queues q on q.queue = h.queue
where h.released_at is null and not q.gated and h.held_at < pawl.now() - :grace;

-- G7 always: the reconciler had nothing to repair that the engine did.
select r.task_id || coalesce('/' || r.step, ''), format('%s at %s', r.kind, r.at) from pawl.repairs r where r.cause = 'engine';
