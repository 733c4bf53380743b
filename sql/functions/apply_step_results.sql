-- does: takes result messages and applies them: R2's second transaction. A malformed message is a dead letter, and ends its
--   attempt when that is known; one of a newer version is put back for a minute, one whose task, or a step of it, somebody
--   holds for a moment. Returns how many were taken.
-- called by: the result-processor actor.
-- locks: its messages by id, then tasks by id, then their steps, waiting for each a tenth of a second at most.
-- raises: 55P03 when somebody holds the row of an entity claim: the messages come back.
create or replace function pawl.apply_step_results(ids bigint[], processor text default null) returns int
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  results pawl.step_result[];
  bad bigint[];
  tasks uuid[];
  held uuid[];
  taken int;
  waits text := current_setting('lock_timeout');
begin
  perform set_config('pawl.processor', coalesce(processor, ''), true);
  if exists (select from pgmq.q_orchestration_step_results q where q.msg_id = any (ids) and q.message->'v' > '1') then
    ids := pawl.put_back_newer('orchestration_step_results', ids);
  end if;
  with own as (
    select q.msg_id, q.message from pgmq.q_orchestration_step_results q where q.msg_id = any (ids) order by q.msg_id for update),
  judged as materialized (
    select o.*, case when pawl.has_vast_number(o.message) then false -- asked first: what follows writes numbers out
      else jsonb_typeof(o.message) = 'object' and pawl.as_uuid(o.message->>'task_id') is not null
        and coalesce(o.message->'v', '1') = '1' and coalesce(jsonb_typeof(o.message->'step') = 'string', false)
        and coalesce((o.message->>'attempt') ~ '^[0-9]{1,9}$', false) and coalesce(o.message->>'index', '0') ~ '^[0-9]{1,9}$'
        and coalesce(o.message->>'status', '') in ('complete', 'failed', 'rejected')
        and octet_length(coalesce((o.message->'result')::text, '')) + octet_length(coalesce((o.message->'error')::text, '')) <= 1048576
        and (o.message->>'status' = 'complete' or coalesce(jsonb_typeof(o.message->'error'), 'object') = 'object')
        and not exists (select from jsonb_object_keys(case jsonb_typeof(o.message) when 'object' then o.message else '{}' end) field
          where field not in ('v', 'task_id', 'step', 'index', 'attempt', 'status', 'result', 'error', 'worker')) end as good
    from own o)
  select array_agg((pawl.as_uuid(j.message->>'task_id'), j.message->>'step', coalesce((j.message->>'index')::int, 0),
      (j.message->>'attempt')::int, j.message->>'status', j.message->'result',
      case when j.message->>'status' <> 'complete' then coalesce(j.message->'error', '{"type": "unknown"}') end,
      left(j.message->>'worker', 200), j.msg_id)::pawl.step_result order by j.msg_id) filter (where j.good),
    array_agg(j.msg_id) filter (where j.good is not true), count(*)
  into results, bad, taken from judged j;
  if bad is not null then
    perform pawl.dead_letter_messages('orchestration_step_results', bad, 'not a step result: needs task_id, step, attempt and '
      'status complete, failed or rejected; has v (1), index, result, error, worker at most; result and error are at most 1 MiB as text');
  end if;
  if results is null then
    return taken;
  end if;

  tasks := array(select distinct r.task_id from unnest(results) r);
  begin
    -- Locked inside: a row locked outside a sub-transaction and updated inside it gets a multixact.
    perform pawl.lock_tasks(tasks);
    perform set_config('lock_timeout', '100ms', true); -- a step that fails fast may cancel one that somebody holds
    perform pawl.settle_step_results(results);
    perform set_config('lock_timeout', waits, true); -- the commit waits for all who notify
  exception when lock_not_available then
    held := pawl.held_tasks(tasks);
    -- Who read them has its last look, of the series that follows, 855 ms later.
    perform pawl.put_back('orchestration_step_results', array(select r.msg_id from unnest(results) r where r.task_id = any (held)),
      interval '500 ms');
    taken := taken - (select count(*) from unnest(results) r where r.task_id = any (held));
    results := array(select r from unnest(results) r where not r.task_id = any (held));
    if cardinality(results) > 0 then
      perform pawl.settle_step_results(results);
    end if;
  end;
  delete from pgmq.q_orchestration_step_results q where q.msg_id = any (array(select r.msg_id from unnest(results) r));
  return taken;
end $$;
