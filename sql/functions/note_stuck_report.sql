-- does: an investigator's word on a stuck report: its status (open, investigating, resolved) and notes. Returns {report_id,
--   outcome: noted, status}.
-- called by: operators.
-- locks: the report.
-- raises: PW020 for an unknown report, PW023, PW024 for another status.
create or replace function pawl.note_stuck_report(report_id bigint, status text, notes text, actor text, reason text)
returns jsonb language plpgsql set jit = off as $$
#variable_conflict use_variable
declare
  task uuid;
begin
  perform pawl.begin_operation(actor, reason);
  if coalesce(status, '') not in ('open', 'investigating', 'resolved') then
    perform pawl.refuse_setting('the status', 'open, investigating or resolved');
  end if;
  update pawl.stuck_reports r set status = note_stuck_report.status, notes = note_stuck_report.notes,
    ended_at = case when note_stuck_report.status = 'resolved' then pawl.now() end
  where r.report_id = note_stuck_report.report_id returning r.task_id into task;
  if task is null then
    raise exception 'there is no stuck report %', report_id using errcode = 'PW020', hint = 'pawl stuck lists them.';
  end if;
  return pawl.end_operation('note_stuck_report', jsonb_build_object('task_id', task), jsonb_build_object('outcome', 'noted',
    'report_id', report_id, 'status', status));
end $$;
