-- does: one page of the search for open work that nobody will move. Goes over the tasks by key, all instances sharing one
--   place (reconciler_page); at the end of a pass it looks through the step queues, step keys and entity claims, and begins again. An
--   attempt without its message is ended as a crash, in a later pass, unless its result was on the way (reconcile_attempts); a
--   task that does not follow from its steps is settled (reconcile_tasks). What one call does is bounded, or it would be rolled
--   back at its timeout and begin the same page for ever. Returns {busy} when another instance is at it, else {looked_at, noted,
--   repaired: {engine, foreign}, ended, absorbed, stuck, wrapped}: engine means a defect of Pawl, foreign a worker that lost a
--   message.
-- called by: every orchestrator, a page per tick. grace: how long a step or task must have been idle.
-- locks: an advisory lock (try), messages and tasks, all skip locked, then their steps, entity claims.
-- raises: nothing of its own.
create or replace function pawl.reconcile(processor text default null, page int default 1000, grace interval default '1 minute')
returns jsonb language plpgsql set jit = off as $$
declare
  at timestamptz := pawl.now();
  place pawl.reconciler;
  open uuid[];
  last uuid;
  noted int := 0;
  engine int := 0;
  lost int := 0;
  stuck int := 0;
  queues jsonb := '{"ended": 0, "absorbed": 0}';
  wrapped boolean;
begin
  if not pg_try_advisory_xact_lock(hashtext('pawl.reconcile'), 0) then
    return '{"busy": true}';
  end if;
  perform set_config('pawl.processor', coalesce(processor, ''), true);
  select * into place from pawl.reconciler;
  select p.open, p.last into open, last from pawl.reconciler_page(place.after_task, page) p;
  wrapped := last is null;

  delete from pawl.reconciler_notes n where n.task_id > place.after_task and (wrapped or n.task_id <= last)
    and not n.task_id = any (open);
  update pawl.stuck_reports r set status = 'resolved', ended_at = at
  where r.task_id > place.after_task and (wrapped or r.task_id <= last) and r.ended_at is null
    and not exists (select from pawl.tasks t where t.task_id = r.task_id and t.state::text = r.state and t.state_since = r.state_since);
  if cardinality(open) > 0 or wrapped then
    select a.noted, a.repaired into noted, lost from pawl.reconcile_attempts(open, place.pass, grace) a;
    engine := pawl.reconcile_tasks(open, grace);
    stuck := pawl.report_stuck_tasks(open);
  end if;
  if wrapped then
    queues := pawl.reconcile_queues(grace);
    perform pawl.reconcile_step_keys(page);
    lost := lost + pawl.reconcile_claims();
  end if;
  update pawl.reconciler r set pass = r.pass + wrapped::int,
    after_task = case when wrapped then '00000000-0000-0000-0000-000000000000' else last end;
  return queues || jsonb_build_object('looked_at', cardinality(open), 'noted', noted, 'wrapped', wrapped, 'stuck', stuck,
    'repaired', jsonb_build_object('engine', engine, 'foreign', lost));
end $$;
