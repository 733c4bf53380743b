-- does: applies results whose tasks are free at once, and sends the others to the results queue; all of them where the
--   caller's transaction sees gates and keys as they were at its begin. Whatever raises while
--   applying sends all of them to the queue, where the result-processor tries them one by one. Returns the messages whose
--   results end their attempts, those that the queue brings later among them: their attempts have no timeout any more. One that
--   somebody is ending just now is not among them; its result goes to the queue all the same, for that may be undone. What a
--   sweep has deleted meanwhile takes no result: it is absorbed.
-- called by: report_steps.
-- locks: task rows, skip locked, then their steps; of the other tasks the steps with a timeout. It waits for no task, and for a step a
--   tenth of a second: the clock may be ending it, and what fails fast may cancel one whose report is not committed yet.
-- raises: nothing of its own.
create or replace function pawl.hand_in_step_results(results pawl.step_result[]) returns bigint[]
language plpgsql set lock_timeout = '100ms' as $$
declare
  ids uuid[];
  free uuid[];
  timely bigint[];
  later pawl.step_result[];
  gone uuid[];
begin
  begin
    -- Locked inside: a row locked outside a sub-transaction and updated inside it gets a multixact.
    select d.ids, case when s.direct and not s.staged
      and current_setting('transaction_isolation') = 'read committed' then array(select t.task_id from pawl.tasks t where t.task_id = any (d.ids)
      order by t.task_id for no key update skip locked) end
    into ids, free from pawl.engine_settings s, (select array(select distinct r.task_id from unnest(results) r) as ids) d;
    if cardinality(free) = cardinality(ids) then
      return pawl.settle_step_results(results);
    elsif cardinality(free) > 0 then
      timely := pawl.settle_step_results(array(select r from unnest(results) r where r.task_id = any (free)));
    end if;
  exception when others then
    free := null;
    timely := null;
  end;
  later := array(select r from unnest(results) r where free is null or not r.task_id = any (free));
  gone := array(select r.task_id from unnest(later) r where not exists (select from pawl.tasks t where t.task_id = r.task_id offset 0));
  if cardinality(gone) > 0 then
    insert into pawl.absorbed (queue, msg_id, task_id, step, index, attempt, reason)
    select 'orchestration_step_results', r.msg_id, r.task_id, r.step, r.index, r.attempt, 'task is gone'
    from unnest(later) r where r.task_id = any (gone);
    later := array(select r from unnest(later) r where not r.task_id = any (gone));
  end if;
  insert into pgmq.q_orchestration_step_results (vt, message, headers)
  select clock_timestamp(), jsonb_strip_nulls(jsonb_build_object('v', 1, 'task_id', r.task_id, 'step', r.step, 'index', r.index,
    'attempt', r.attempt, 'status', r.status, 'worker', r.worker))
    || case when r.error is null then '{}' else jsonb_build_object('error', r.error) end
    || case when r.result is null then '{}' else jsonb_build_object('result', r.result) end,
    (select t.trace from pawl.tasks t where t.task_id = r.task_id)
  from unnest(later) r;
  -- The clock looks at what it locks (fire_tasks): either it sees that there is nothing due, or this waits for its end.
  begin
    with mine as (
      select s.task_id, s.step, s.index, r.msg_id from unnest(later) r
      join pawl.steps s on s.task_id = r.task_id and s.step = r.step and s.index = r.index
      where s.attempt = r.attempt and s.state in ('in_progress', 'enqueued') and s.due_at is not null
      order by s.task_id, s.step, s.index for no key update of s),
    untimed as (
      update pawl.steps s set due_at = null from mine m
      where s.task_id = m.task_id and s.step = m.step and s.index = m.index
      returning m.msg_id)
    select timely || array(select u.msg_id from untimed u) || array(select r.msg_id from unnest(later) r
      join pawl.steps s on s.task_id = r.task_id and s.step = r.step and s.index = r.index
      where s.attempt = r.attempt and s.state in ('in_progress', 'enqueued') and s.due_at is null) into timely;
  exception when lock_not_available then
    null; -- told as late; what they wrote counts when nobody ends their attempts
  end;
  return timely;
end $$;
