-- Steps and the messages of the queues. messages holds all live messages of the queues that Pawl knows.
-- Not here: C10 and C11 (each removal has its effect in the same transaction; sent less removed is what is there) need a
-- log of removals, which test/crash keeps and a production database does not.

-- C1 always: an enqueued step has the message of its attempt, or its result is on its way: nothing is lost.
--   A worker that pops messages, or deletes one before it sent the result, is found here until the reconciler repairs it.
select s.task_id || '/' || s.step, format('attempt %s is enqueued without a message', s.attempt)
from pawl.steps s
where s.state = 'enqueued' and not exists (select from messages m where m.task_id = s.task_id and m.step = s.step
  and m.index = s.index and m.attempt = s.attempt and m.queue in (s.queue, 'orchestration_step_results'));

-- C2 always: a step in progress has the message of its attempt, which comes back when the lease ends, or its result is on its way.
select s.task_id || '/' || s.step, format('attempt %s is in progress without a message', s.attempt)
from pawl.steps s
where s.state = 'in_progress' and not exists (select from messages m where m.task_id = s.task_id and m.step = s.step
  and m.index = s.index and m.attempt = s.attempt and m.queue in (s.queue, 'orchestration_step_results'));

-- C3 always: what waits for a time has a time: steps in back-off, tasks that start later.
--   Differs: a result on its way is no state here (C1, C2).
select s.task_id || '/' || s.step, 'waits for its retry without a time' from pawl.steps s
where s.state = 'waiting_for_retry' and s.due_at is null
union all
select t.task_id::text, 'waits for its start without a time' from pawl.tasks t where t.state = 'pending' and t.due_at is null;

-- C4 rest: every message of a step queue speaks of a step.
--   Only at rest: garbage and messages of forgotten tasks go when they are read.
select m.queue || ' ' || m.msg_id, 'speaks of no step' from messages m
where not m.engine and not m.paused and m.vt < clock_timestamp() - :grace
  and not exists (select from pawl.steps s where s.task_id = m.task_id and s.step = m.step and s.index = m.index);

-- C5 always: no message of a step queue is of an attempt that has not begun.
select m.queue || ' ' || m.msg_id, format('attempt %s of %s/%s, which is at attempt %s', m.attempt, s.task_id, s.step, s.attempt)
from messages m join pawl.steps s on s.task_id = m.task_id and s.step = m.step and s.index = m.index
where not m.engine and m.attempt > s.attempt;

-- C6 rest: no message of an attempt that has ended is left.
--   Differs: who reads it absorbs it, so it may stay while a lease lasts or a queue is paused.
select m.queue || ' ' || m.msg_id, format('attempt %s of %s/%s, which is %s at attempt %s', m.attempt, s.task_id, s.step, s.state, s.attempt)
from messages m join pawl.steps s on s.task_id = m.task_id and s.step = m.step and s.index = m.index
where not m.engine and not m.paused and m.vt < clock_timestamp() - :grace
  and (m.attempt < s.attempt or s.state not in ('enqueued', 'in_progress'));

-- C7 rest: the engine's queues are drained.
--   Differs: how long steps wait for workers is theirs to say.
select m.queue || ' ' || m.msg_id, format('visible since %s, read %s times', m.vt, m.read_ct) from messages m
where m.engine and m.vt < clock_timestamp() - :grace;

-- C8 rest: no message of a step queue is far over its delivery limit.
--   Only at rest: the next read, or the reconciler, ends its attempt.
select m.queue || ' ' || m.msg_id, format('read %s times, its limit is %s', m.read_ct, ts.max_deliveries)
from messages m
join pawl.steps s on s.task_id = m.task_id and s.step = m.step and s.index = m.index and s.attempt = m.attempt
join pawl.template_steps ts on ts.template_id = s.template_id and ts.step = s.step
where not m.engine and not m.paused and m.read_ct > ts.max_deliveries + 1 and m.vt < clock_timestamp() - :grace;

-- C9 always: a message that nobody has read was sent by the transaction that enqueued its step.
--   Differs: seen from the rows' own transaction (xmin), so only while nobody has read the message; steps with an entity
--   claim are put off by a new message. A copy that somebody else sent, or a message whose time somebody moved, is found here until it is read. Rows that a restore
--   has written are not asked.
select m.queue || ' ' || m.msg_id, format('attempt %s of %s/%s was enqueued by another transaction', m.attempt, m.task_id, m.step)
from messages m
join pawl.steps s on s.task_id = m.task_id and s.step = m.step and s.index = m.index and s.attempt = m.attempt and s.state = 'enqueued'
where not m.engine and m.read_ct = 0 and (m.headers->>'claim') is null
  and exists (select from pawl.audit a where a.task_id = m.task_id and a.step = m.step and a.index = m.index
    and a.attempt = m.attempt and a.to_state = 'enqueued'
    and (a.xmin::text::bigint - (a.xid::text::bigint & 4294967295)) between 0 and 1000000)
  and not exists (select from pawl.audit a where a.task_id = m.task_id and a.step = m.step and a.index = m.index
    and a.attempt = m.attempt and a.to_state = 'enqueued' and a.xmin::text = m.sent_by);

-- C12 always: an attempt is queued at most once.
--   A copy that somebody else sent is found here until it is absorbed.
select m.task_id || '/' || m.step, format('attempt %s has %s messages', m.attempt, count(*))
from messages m
join pawl.steps s on s.task_id = m.task_id and s.step = m.step and s.index = m.index and s.attempt = m.attempt
where not m.engine and s.state in ('enqueued', 'in_progress')
group by m.task_id, m.step, m.index, m.attempt having count(*) > 1;
