-- does: one page of the search for open work that nobody will move. Goes over the tasks by key, all instances sharing one
--   place (page open ones, at most 20 times as many in all); at the end of a pass it looks through the step queues and step
--   keys, and begins again. An attempt without its message is ended as a crash, in a later pass, unless its result was on the
--   way (reconcile_attempts); a task that does not follow from its steps is settled (reconcile_tasks). Returns {busy} when
--   another instance is at it, else {scanned, noted, repaired: {engine, foreign}, ended, absorbed, stuck, wrapped}: engine
--   means a defect of Pawl, foreign a worker that lost a message.
-- called by: every orchestrator, a page per tick. grace: how long a step or task must have been idle.
-- locks: an advisory lock (try), messages and tasks, all skip locked, then their steps.
-- raises: nothing of its own.
create or replace function pawl.reconcile(processor text default null, page int default 1000, grace interval default '1 minute')
returns jsonb language plpgsql as $$
declare
  place pawl.reconciler;
  seen record;
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
  select count(*) as scanned, (array_agg(p.task_id order by p.task_id desc))[1] as last,
    coalesce((array_agg(p.task_id order by p.task_id) filter (where p.finalized_at is null))[:page], '{}') as open
  into seen
  from (select t.task_id, t.finalized_at from pawl.tasks t where t.task_id > place.after_task order by t.task_id limit page * 20) p;
  wrapped := seen.scanned < page * 20 and cardinality(seen.open) < page;
  if cardinality(seen.open) = page then
    seen.last := seen.open[page];
  end if;

  delete from pawl.reconciler_notes n where n.task_id > place.after_task and (wrapped or n.task_id <= seen.last)
    and not n.task_id = any (seen.open);
  if cardinality(seen.open) > 0 or wrapped then
    select a.noted, a.repaired into noted, lost from pawl.reconcile_attempts(seen.open, place.pass, grace) a;
    engine := pawl.reconcile_tasks(seen.open, grace);
    stuck := pawl.report_stuck_tasks(seen.open);
  end if;
  if wrapped then
    queues := pawl.reconcile_queues(grace);
    perform pawl.reconcile_step_keys(page);
  end if;
  update pawl.reconciler r set pass = r.pass + wrapped::int,
    after_task = case when wrapped then '00000000-0000-0000-0000-000000000000' else seen.last end;
  return queues || jsonb_build_object('scanned', seen.scanned, 'noted', noted, 'wrapped', wrapped, 'stuck', stuck,
    'repaired', jsonb_build_object('engine', engine, 'foreign', lost));
end $$;
