-- does: moves messages of an engine queue into the dead letters; one that belongs to a known attempt ends that attempt.
--   An entity claim that waited for the result (its row was held at the report) waits no longer: once it is older than its
--   entity's limit, the module's janitor takes it.
-- called by: the actors, for a message that raised alone; apply_step_results, for malformed ones.
-- locks: its messages by id, then the claims.
-- raises: PW010 for a queue that is not the engine's.
create or replace function pawl.dead_letter_messages(queue text, ids bigint[], reason text) returns int language plpgsql set jit = off as $$
declare
  moved int;
begin
  if not exists (select from pawl.queues q where q.queue = dead_letter_messages.queue and q.engine) then
    raise exception '% is not a queue of the engine', queue using errcode = 'PW010';
  end if;
  execute format($q$
    with gone as (
      delete from pgmq.%I q where q.msg_id = any (array(
        select l.msg_id from pgmq.%1$I l where l.msg_id = any ($1) order by l.msg_id for update))
      returning q.msg_id, q.read_ct, q.message, q.headers,
        -- Nothing else is written out: thousands of vast numbers would be gigabytes.
        pawl.as_uuid(case jsonb_typeof(q.message->'task_id') when 'string' then q.message->>'task_id' end) as task_id,
        case jsonb_typeof(q.message->'step') when 'string' then q.message->>'step' end as step,
        case when jsonb_typeof(q.message->'attempt') in ('number', 'string') then q.message->>'attempt' end as attempt,
        case when jsonb_typeof(q.message->'index') in ('number', 'string') then q.message->>'index' else '0' end as index),
    ended as (
      insert into pgmq.q_orchestration_step_results (vt, message)
      select clock_timestamp(), jsonb_build_object('v', 1, 'task_id', s.task_id, 'step', s.step, 'index', s.index, 'attempt', s.attempt,
        'status', 'failed', 'error', jsonb_build_object('type', 'dead_letter', 'message', left($2, 500), 'retryable', false))
      from gone g join pawl.steps s on s.task_id = g.task_id and s.step = g.step and s.index::text = g.index
        and s.state in ('enqueued', 'in_progress') and s.attempt::text = g.attempt
      where $3 = 'orchestration_step_results' and coalesce(g.message#>'{error,type}' <> '"dead_letter"', true)),
    released as (
      update pawl.entity_claims c set lease_until = $4
      from (select x.entity, x.entity_id from gone g join pawl.entity_claims x on x.task_id = g.task_id
          and x.step = g.step and x.index::text = g.index and x.attempt::text = g.attempt
        where $3 = 'orchestration_step_results' and x.lease_until = 'infinity'
        order by x.entity, x.entity_id for update of x) l
      where c.entity = l.entity and c.entity_id = l.entity_id),
    dead as (
      insert into pawl.dead_letters (queue, msg_id, read_count, message, headers, reason, task_id, step)
      select $3, g.msg_id, g.read_ct, g.message, g.headers, $2, g.task_id, left(g.step, 100)
      from gone g returning 1)
    select count(*) from dead $q$, 'q_' || queue) into moved using ids, reason, queue, pawl.now();
  return moved;
end $$;
