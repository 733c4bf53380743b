-- Identities: tasks by key, steps by key, the user's rows under entity claims, operators' commands.
-- Not here: E3 (schedules are not built), E4 to E7 (what clients were told) need the clients' own history, kept by test/cluster.

-- E1 always: of the tasks with one key at most one is open.
select t.scope || ' ' || t.key, format('%s open tasks: %s', count(*), string_agg(t.task_id::text, ', ' order by t.task_id))
from pawl.tasks t where t.key is not null and not pawl.is_final(t.state)
group by t.scope, t.key having count(*) > 1;

-- E2 always: no epoch of a key has two tasks, and the key's holder is its latest task.
select t.scope || ' ' || t.key, format('epoch %s has %s tasks', t.epoch, count(*))
from pawl.tasks t where t.key is not null group by t.scope, t.key, t.epoch having count(*) > 1
union all
select i.scope || ' ' || i.key, format('is held by %s of epoch %s, but %s is of epoch %s', i.task_id, i.epoch, t.task_id, t.epoch)
from pawl.task_identities i join pawl.tasks t on t.scope = i.scope and t.key = i.key and t.epoch > i.epoch;

-- E9 always: an open task with a key holds its key, and a key says of its holder what is true.
select t.task_id::text, format('is %s, its key is held by %s', t.state, coalesce(i.task_id::text, 'nobody'))
from pawl.tasks t left join pawl.task_identities i on i.scope = t.scope and i.key = t.key
where t.key is not null and not pawl.is_final(t.state) and i.task_id is distinct from t.task_id
union all
select i.scope || ' ' || i.key, format('says %s (expires %s) of %s, which is %s', i.status, coalesce(i.expires_at::text, 'never'), t.task_id, t.state)
from pawl.task_identities i join pawl.tasks t on t.task_id = i.task_id
where not case when pawl.is_final(t.state) then i.status = pawl.public_status(t.state) and i.expires_at is not null
  else i.status in ('pending', 'running') and i.expires_at is null end;

-- E8 always: what an operator cancelled has ended, unless another command opened it again.
select o.task_id::text, format('was cancelled by %s at %s and is %s', o.actor, o.at, t.state)
from pawl.operations o join pawl.tasks t on t.task_id = o.task_id
where o.command = 'cancel_task' and o.outcome->>'outcome' = 'cancelled' and not pawl.is_final(t.state)
  and not exists (select from pawl.operations later where later.task_id = o.task_id and later.operation_id > o.operation_id);

-- E10 rest: a step key is held by a step that has not failed, and a completed one says so.
--   Only at rest: a key that somebody was at work with is looked at again.
select i.scope || ' ' || i.key, format('is %s, its holder %s/%s is %s', i.status, i.task_id, i.step, coalesce(s.state::text, 'gone'))
from pawl.step_identities i left join pawl.steps s on s.task_id = i.task_id and s.step = i.step and s.index = i.index
where i.expires_at is null and (s.state is null or s.state in ('error', 'cancelled', 'skipped')
  or (i.status = 'running' and s.state in ('complete', 'resolved_manually')));

-- E11 rest: who waits for a step key waits, for a key that somebody holds.
select w.task_id || '/' || w.step, format('is %s, waits for key %s of %s', coalesce(s.state::text, 'gone'), w.key,
  coalesce(i.task_id || '/' || i.step, 'nobody'))
from pawl.step_key_waiters w
left join pawl.steps s on s.task_id = w.task_id and s.step = w.step and s.index = w.index
left join pawl.step_identities i on i.scope = w.scope and i.key = w.key
where s.state is distinct from 'waiting' or i.key is null or i.expires_at is not null;

-- E12 always: an entity claim belongs to a step that acts, or is marked for its janitor.
select c.entity || ' ' || c.entity_id, format('is claimed by %s/%s attempt %s, which is %s', c.task_id, c.step, c.attempt, coalesce(s.state::text, 'gone'))
from pawl.entity_claims c left join pawl.steps s on s.task_id = c.task_id and s.step = c.step and s.index = c.index
where (s.state = 'in_progress' and s.attempt = c.attempt) is not true and c.revoked_at is null and c.lease_until < 'infinity';
