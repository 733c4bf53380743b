-- does: notes attempts without a message, and ends as a crash those that an earlier pass has noted, that are unchanged, and
--   whose result cannot be on its way: no message of their task at or below the noted id is left in the results queue, visible
--   or not. Looks through the queues whose turn it is (queues_in_turn), and ends at most 2,000 attempts; the rest is left to later passes.
-- called by: reconcile.
-- locks: tasks, skip locked, then their steps.
-- raises: nothing of its own.
create or replace function pawl.reconcile_attempts(tasks uuid[], pass bigint, grace interval, out noted int, out repaired int)
language plpgsql as $$
#variable_conflict use_column
declare
  at timestamptz := pawl.now();
  this_pass bigint := pass;
  issued regclass := pg_get_serial_sequence('pgmq.q_orchestration_step_results', 'msg_id');
  flight uuid[] := pawl.results_on_their_way(tasks, (select max(n.results_msg_id) from pawl.reconciler_notes n
    where n.task_id = any (tasks) and n.pass < this_pass));
  queues text[] := pawl.queues_in_turn(array(
    select distinct s.queue from pawl.steps s where s.task_id = any (tasks) and s.state in ('enqueued', 'in_progress')));
  due pawl.reconciler_notes[];
  free uuid[];
  results pawl.step_result[];
begin
  with lost as materialized (select * from pawl.lost_attempts(tasks, queues, grace)),
  gone as (
    delete from pawl.reconciler_notes n where n.task_id = any (tasks) and not exists (select from lost l
      where l.task_id = n.task_id and l.step = n.step and l.index = n.index and l.attempt = n.attempt and l.revision = n.revision)
      and not exists (select from pawl.steps s where s.task_id = n.task_id and s.step = n.step and s.index = n.index
        and s.attempt = n.attempt and s.revision = n.revision and s.queue <> all (queues))),
  fresh as ( -- the id is asked for when all lost are known: a report that was committed before has a lower one
    insert into pawl.reconciler_notes (task_id, step, index, attempt, revision, results_msg_id, pass, noted_at)
    select l.task_id, l.step, l.index, l.attempt, l.revision, coalesce(pg_sequence_last_value(issued), 0), this_pass, at from lost l
    where not exists (select from pawl.reconciler_notes n
      where n.task_id = l.task_id and n.step = l.step and n.index = l.index and n.attempt = l.attempt and n.revision = l.revision)
    on conflict do nothing
    returning 1)
  select (select count(*) from fresh), array(select n from pawl.reconciler_notes n join lost l
    on l.task_id = n.task_id and l.step = n.step and l.index = n.index and l.attempt = n.attempt and l.revision = n.revision
    where n.pass < this_pass and not n.task_id = any (flight) limit 2000)
  into noted, due;
  repaired := 0;
  if cardinality(due) = 0 then
    return;
  end if;
  free := array(select t.task_id from pawl.tasks t where t.task_id = any (array(select d.task_id from unnest(due) d))
    and not pawl.is_final(t.state) order by t.task_id for no key update skip locked);
  results := array(
    select (s.task_id, s.step, s.index, s.attempt, 'failed', null, jsonb_build_object('type', 'crash', 'retryable', true,
      'message', 'its message disappeared without a result'), s.worker, null)::pawl.step_result
    from unnest(due) d join pawl.steps s on s.task_id = d.task_id and s.step = d.step and s.index = d.index
      and s.attempt = d.attempt and s.revision = d.revision and s.state in ('enqueued', 'in_progress')
    where d.task_id = any (free));
  if cardinality(results) = 0 then
    return;
  end if;
  repaired := pawl.repair_attempts(results, false);
end $$;
