-- does: writes reports with a snapshot (explain_task) for those of these tasks that are stuck and have none. Policy report is
--   the only one: nothing is moved. A snapshot looks through the queues of its task's steps: at most 20 are made, of
--   about 200 MB of queues in all, and the other tasks are reported in later passes. One whose own queues are larger is reported
--   without its steps. Returns how many reports are new.
-- called by: reconcile.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.report_stuck_tasks(ids uuid[]) returns int language plpgsql as $$
declare
  at timestamptz := pawl.now();
  large constant bigint := 200 * 1024 * 1024;
  looked bigint := 0;
  made int := 0;
  one record;
begin
  for one in
    select n.*, (
      select coalesce(sum(pg_table_size(pawl.queue_table(q.queue))), 0)::bigint
      from (select distinct s.queue from pawl.steps s where s.task_id = n.task_id and s.state in ('enqueued', 'in_progress')) q) as size
    from (
      select t.task_id, t.state, t.state_since, l.threshold
      from pawl.stuck_limits() l
      join pawl.tasks t on t.template_id = l.template_id and t.state = l.state and t.state_since < at - l.threshold
      where t.task_id = any (ids) and not exists (select from pawl.stuck_reports r
        where r.task_id = t.task_id and r.state = t.state::text and r.state_since = t.state_since)
      order by t.state_since, t.task_id limit 20) n
    order by n.state_since, n.task_id
  loop
    if one.size < large then
      looked := looked + one.size;
      exit when looked > large;
    end if;
    insert into pawl.stuck_reports (task_id, state, state_since, threshold, snapshot, reported_at)
    values (one.task_id, one.state, one.state_since, one.threshold, case when one.size < large then pawl.explain_task(one.task_id)
      else jsonb_build_object('task_id', one.task_id, 'state', one.state, 'since', one.state_since,
        'why', 'the queues of its steps are too long to be looked through in passing: explain_task does it', 'steps', '[]'::jsonb) end, at);
    made := made + 1;
  end loop;
  return made;
end $$;
