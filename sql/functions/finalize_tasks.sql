-- does: takes messages that ask whether tasks are at their end. Locks each task (a second finalizer waits, then sees the
--   final state) and looks again. Returns [{task_id, outcome: finalized|already_final|not_ready}].
-- called by: the finalizer actor.
-- locks: its messages by id, then tasks by id.
-- raises: 55P03 when a task stays locked: the messages come back, nothing is held.
create or replace function pawl.finalize_tasks(ids bigint[], processor text default null) returns jsonb
language plpgsql set jit = off as $$
declare
  tasks uuid[];
  ended uuid[];
  outcomes jsonb;
begin
  perform set_config('pawl.processor', coalesce(processor, ''), true);
  ids := pawl.put_back_newer('orchestration_task_finalizations', ids);
  with gone as (
    delete from pgmq.q_orchestration_task_finalizations q where q.msg_id = any (array(
      select l.msg_id from pgmq.q_orchestration_task_finalizations l where l.msg_id = any (ids) order by l.msg_id for update))
    returning q.msg_id, q.read_ct, q.message, q.headers),
  dead as (
    insert into pawl.dead_letters (queue, msg_id, read_count, message, headers, reason)
    select 'orchestration_task_finalizations', g.msg_id, g.read_ct, g.message, g.headers, 'names no task_id'
    from gone g where pawl.as_uuid(g.message->>'task_id') is null)
  select array_agg(distinct pawl.as_uuid(g.message->>'task_id')) into tasks
  from gone g where pawl.as_uuid(g.message->>'task_id') is not null;
  perform from pawl.tasks t where t.task_id = any (tasks) order by t.task_id for no key update;
  select array_agg(t.task_id) filter (where t.state = 'evaluating_results'), jsonb_agg(jsonb_build_object('task_id', i.id, 'outcome',
      case when t.state = 'evaluating_results' then 'finalized' when pawl.is_final(t.state) then 'already_final' else 'not_ready' end))
  into ended, outcomes
  from unnest(tasks) i(id) left join pawl.tasks t on t.task_id = i.id;
  if ended is not null then
    perform pawl.finish_counted_tasks(ended);
  end if;
  return coalesce(outcomes, '[]');
end $$;
