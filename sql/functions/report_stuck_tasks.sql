-- does: writes a report with a snapshot (explain_task) for each of these tasks that is stuck and has none, and ends the
--   reports of those that moved on. Policy report is the only one: nothing is moved. Returns how many are new.
-- called by: reconcile.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.report_stuck_tasks(ids uuid[]) returns int language plpgsql as $$
declare
  at timestamptz := pawl.now();
  made int;
begin
  update pawl.stuck_reports r set status = 'resolved', ended_at = at
  where r.ended_at is null and not exists (select from pawl.tasks t
    where t.task_id = r.task_id and t.state::text = r.state and t.state_since = r.state_since);
  insert into pawl.stuck_reports (task_id, state, state_since, threshold, snapshot, reported_at)
  select t.task_id, t.state, t.state_since, l.threshold, pawl.explain_task(t.task_id), at
  from pawl.stuck_limits() l
  join pawl.tasks t on t.template_id = l.template_id and t.state = l.state and t.state_since < at - l.threshold
  where t.task_id = any (ids)
  on conflict do nothing;
  get diagnostics made = row_count;
  return made;
end $$;
