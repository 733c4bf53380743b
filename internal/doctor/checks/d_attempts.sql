-- Attempts. Not here: D1, D2 and D7 (effects of handlers, results of workers that lost their lease) need the handlers' own
-- ledger, kept outside the database by test/cluster.

-- D3 always: the attempts of a step are numbered 1, 2, 3 and its failures stay within max_attempts.
--   Differs: an operator's retry begins a new count of failures, not of attempts.
select s.task_id || '/' || s.step, format('%s failures, at most %s attempts', s.failures, ts.max_attempts)
from pawl.steps s join pawl.template_steps ts on ts.template_id = s.template_id and ts.step = s.step
where s.failures > ts.max_attempts
union all
select a.task_id || '/' || a.step, format('%s attempts were enqueued, the last is number %s', count(*), max(a.attempt))
from pawl.audit a join pawl.tasks t on t.task_id = a.task_id
where a.step is not null and a.to_state = 'enqueued'
group by a.task_id, a.step, a.index, t.requested_at
having count(*) <> max(a.attempt) and t.requested_at > pawl.now() - (select e.audit_retention from pawl.engine_settings e);

-- D4 always: a new attempt begins only when its step is enqueued, one at a time.
select p.task_id || '/' || p.step, format('%s -> %s takes attempt %s to %s', p.from_state, p.to_state, p.before, p.attempt)
from (select a.*, lag(a.attempt) over (partition by a.task_id, a.step, a.index order by a.revision) as before
  from pawl.audit a where a.step is not null) p
where p.before is not null and p.attempt <> p.before + (p.to_state = 'enqueued')::int;

-- D5 always: the attempts of a step do not overlap: one that has ended, or given way, never moves the step again.
--   Differs: a step has one row, so the attempt that is live is the one it names; ended is what left enqueued and in_progress.
select p.task_id || '/' || p.step, format('attempt %s moves %s -> %s after it had ended', p.attempt, p.from_state, p.to_state)
from (select a.*, bool_or(a.from_state in ('enqueued', 'in_progress') and a.to_state not in ('enqueued', 'in_progress'))
    over (partition by a.task_id, a.step, a.index, a.attempt order by a.revision rows between unbounded preceding and 1 preceding) as ended
  from pawl.audit a where a.step is not null) p
where p.ended and p.to_state = 'in_progress';

-- D6 always: at most one result is applied for each attempt.
select a.task_id || '/' || a.step, format('attempt %s ended %s times', a.attempt, count(*))
from pawl.audit a
where a.step is not null and a.from_state in ('enqueued', 'in_progress') and a.to_state in ('complete', 'error', 'waiting_for_retry')
group by a.task_id, a.step, a.index, a.attempt having count(*) > 1;

-- D8 always: a complete step was completed exactly once since it last began anew.
select s.task_id || '/' || s.step, format('is complete, and was completed %s times, reopened %s times', coalesce(n.done, 0), coalesce(n.left_it, 0))
from pawl.steps s join pawl.tasks t on t.task_id = s.task_id
left join (select a.task_id, a.step, a.index, count(*) filter (where a.to_state = 'complete') as done,
    count(*) filter (where a.from_state = 'complete') as left_it
  from pawl.audit a where a.step is not null and 'complete' in (a.from_state, a.to_state) group by 1, 2, 3) n
  on n.task_id = s.task_id and n.step = s.step and n.index = s.index
where s.state = 'complete' and coalesce(n.done, 0) <> coalesce(n.left_it, 0) + 1
  and t.requested_at > pawl.now() - (select e.audit_retention from pawl.engine_settings e);

-- D9 always: no attempt begins on a step that has ended: it is opened again first.
select a.task_id || '/' || a.step, format('%s -> %s, revision %s', a.from_state, a.to_state, a.revision)
from pawl.audit a
where a.step is not null and a.from_state in ('complete', 'skipped', 'error', 'cancelled', 'resolved_manually')
  and a.to_state in ('enqueued', 'in_progress');

-- D10 always: what says it cannot be retried is not retried.
select s.task_id || '/' || s.step, format('waits for its retry after %s', coalesce(s.error->>'type', 'an error'))
from pawl.steps s where s.state = 'waiting_for_retry' and s.error->>'retryable' = 'false';

-- D11 always: a back-off ends after it began.
--   Differs: the time it was due stands in no audit row, so only back-offs that last are seen.
select s.task_id || '/' || s.step, format('due at %s, failed at %s', s.due_at, s.state_since)
from pawl.steps s where s.state = 'waiting_for_retry' and s.due_at < s.state_since;

-- D12 always: a step has a worker if and only if it is in progress.
select s.task_id || '/' || s.step, format('is %s, worker %s', s.state, coalesce(s.worker, 'is null'))
from pawl.steps s where (s.worker is not null) <> (s.state = 'in_progress');

-- D13 rest: every result is applied or explained: none is left for an attempt that still waits for it.
select m.task_id || '/' || m.step, format('result %s of attempt %s is not applied', m.msg_id, m.attempt)
from messages m join pawl.steps s on s.task_id = m.task_id and s.step = m.step and s.index = m.index and s.attempt = m.attempt
where m.queue = 'orchestration_step_results' and s.state in ('enqueued', 'in_progress') and m.vt < clock_timestamp() - :grace;
