-- does: takes result messages and applies them: R2's second transaction. A malformed message is a dead letter; one of a
--   newer version is put back for a minute. Returns how many were taken.
-- called by: the result-processor actor.
-- locks: its messages by id, then tasks by id, then their steps.
-- raises: 55P03 when a task stays locked: the messages come back.
create or replace function pawl.apply_step_results(ids bigint[], processor text default null) returns int
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  results pawl.step_result[];
  taken int;
begin
  perform set_config('pawl.processor', coalesce(processor, ''), true);
  if exists (select from pgmq.q_orchestration_step_results q where q.msg_id = any (ids) and q.message->'v' > '1') then
    ids := pawl.put_back_newer('orchestration_step_results', ids);
  end if;
  with gone as (
    delete from pgmq.q_orchestration_step_results q where q.msg_id = any (array(
      select l.msg_id from pgmq.q_orchestration_step_results l where l.msg_id = any (ids) order by l.msg_id for update))
    returning q.msg_id, q.read_ct, q.message, q.headers),
  judged as (
    select g.*, jsonb_typeof(g.message) = 'object' and pawl.as_uuid(g.message->>'task_id') is not null
        and coalesce(jsonb_typeof(g.message->'step') = 'string', false)
        and coalesce((g.message->>'attempt') ~ '^[0-9]{1,9}$', false) and coalesce(g.message->>'index', '0') ~ '^[0-9]{1,9}$'
        and coalesce(g.message->>'status', '') in ('complete', 'failed', 'rejected')
        and case when not pawl.has_vast_number(g.message) then octet_length(coalesce((g.message->'result')::text, ''))
          + octet_length(coalesce((g.message->'error')::text, '')) <= 1048576 else false end
        and (g.message->>'status' = 'complete' or coalesce(jsonb_typeof(g.message->'error'), 'object') = 'object')
        and not exists (select from jsonb_object_keys(case jsonb_typeof(g.message) when 'object' then g.message else '{}' end) field
          where field not in ('v', 'task_id', 'step', 'index', 'attempt', 'status', 'result', 'error', 'worker')) as good
    from gone g),
  dead as (
    insert into pawl.dead_letters (queue, msg_id, read_count, message, headers, reason)
    select 'orchestration_step_results', j.msg_id, j.read_ct, j.message, j.headers,
      'not a step result: needs task_id, step, attempt and status complete, failed or rejected; has index, result, error, worker at '
      'most; result and error are at most 1 MiB as text'
    from judged j where j.good is not true)
  select array_agg((pawl.as_uuid(j.message->>'task_id'), j.message->>'step', coalesce((j.message->>'index')::int, 0),
      (j.message->>'attempt')::int, j.message->>'status', j.message->'result',
      case when j.message->>'status' <> 'complete' then coalesce(j.message->'error', '{"type": "unknown"}') end,
      left(j.message->>'worker', 200), j.msg_id)::pawl.step_result order by j.msg_id) filter (where j.good), count(*)
  into results, taken from judged j;
  if results is not null then
    perform from pawl.tasks t where t.task_id = any (array(select distinct r.task_id from unnest(results) r))
      order by t.task_id for no key update;
    perform pawl.settle_step_results(results);
  end if;
  return taken;
end $$;
