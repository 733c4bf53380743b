-- Gates of queues, and dead letters.

-- F1 always: no more attempts were let through a concurrency limit than it allows.
--   Differs: counts slots given since the queue was last configured, because a limit may be lowered below what runs.
select q.queue, format('%s slots, at most %s', count(*), q.max_concurrency)
from pawl.queues q join pawl.held_steps h on h.queue = q.queue and h.released_at > coalesce((select max(o.at) from pawl.operations o
  where o.queue = q.queue and o.command = 'configure_queue'), q.created_at)
where q.max_concurrency is not null group by q.queue, q.max_concurrency having count(*) > q.max_concurrency;

-- F2 always: no window of a rate limit's period saw more starts than the limit and one burst.
--   Differs: counts attempts that were enqueued since the queue was last configured, when a worker claims them. Where the
--   database's clock was set back by more than a second it tells a time twice: such windows are not judged.
with limits as (
  select q.queue, q.rate_limit + pawl.gate_burst(q) as most, q.rate_period, coalesce((select max(o.at) from pawl.operations o
    where o.queue = q.queue and o.command = 'configure_queue'), q.created_at) as since
  from pawl.queues q where q.rate_limit is not null),
begun as (
  select l.queue, l.most, l.rate_period, b.at, max(b.at) over (partition by l.queue order by b.xid) - b.at > interval '1 s' as again
  from limits l join pawl.steps s on s.queue = l.queue
  join pawl.audit e on e.task_id = s.task_id and e.step = s.step and e.index = s.index and e.to_state = 'enqueued' and e.at > l.since
  join pawl.audit b on b.task_id = s.task_id and b.step = s.step and b.index = s.index and b.attempt = e.attempt
    and b.to_state = 'in_progress' and b.from_state = 'enqueued'),
counted as (select b.*, count(*) filter (where b.again) over (partition by b.queue order by b.at) as agains from begun b),
starts as (
  select c.*, lag(c.at, c.most) over w as earlier, c.agains - lag(c.agains, c.most) over w as repeated
  from counted c window w as (partition by c.queue order by c.at, c.agains))
select s.queue, format('more than %s starts within %s before %s', s.most, s.rate_period, s.at) from starts s
where s.at - s.earlier < s.rate_period and s.repeated = 0;

-- F3 always: an open dead letter is no longer in its queue.
select 'dead letter ' || d.dead_letter_id, format('message %s is still in %s', d.msg_id, d.queue)
from pawl.dead_letters d join messages m on m.queue = d.queue and m.msg_id = d.msg_id where d.status = 'open';

-- F4 always: a dead letter has its message and a reason.
select 'dead letter ' || d.dead_letter_id, 'has no message or no reason'
from pawl.dead_letters d where d.message is null or btrim(d.reason) = '';

-- F5 always: an attempt has at most one open dead letter.
--   Differs: counted for each attempt's step message; results nobody asked for may be many.
select d.task_id || '/' || d.step, format('attempt %s has %s open dead letters', d.message->>'attempt', count(*))
from pawl.dead_letters d join pawl.queues q on q.queue = d.queue and not q.engine
where d.status = 'open' and d.task_id is not null group by d.task_id, d.step, d.message->>'index', d.message->>'attempt' having count(*) > 1;

-- F6 rest: a slot of a concurrency limit belongs to an attempt that is under way.
select h.task_id || '/' || h.step, format('has a slot of %s for attempt %s, is %s', h.queue, h.attempt, coalesce(s.state::text, 'gone'))
from pawl.held_steps h left join pawl.steps s on s.task_id = h.task_id and s.step = h.step and s.index = h.index
where h.released_at is not null and h.released_at < pawl.now() - :grace
  and (s.attempt = h.attempt and s.state in ('enqueued', 'in_progress')) is not true;

-- F7 always: a step behind a gate is ready and has not begun.
select h.task_id || '/' || h.step, format('is held for attempt %s, is %s at attempt %s', h.attempt, coalesce(s.state::text, 'gone'), s.attempt)
from pawl.held_steps h left join pawl.steps s on s.task_id = h.task_id and s.step = h.step and s.index = h.index
where h.released_at is null and (s.state = 'pending' and s.needs_open = 0 and h.attempt = s.attempt + 1) is not true;
