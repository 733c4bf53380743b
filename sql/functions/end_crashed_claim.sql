-- does: ends the attempt behind a claim that a janitor has ended, as the step's on_crash says: retry is a failure that is
--   tried again; hold, and a claim that was lost, leaves the step waiting for an operator's retry_step, complete_step or
--   resolve_step. A step that has ended otherwise stays as it is.
-- called by: revert_stale_claims.
-- locks: nothing more: task and step are locked.
-- raises: nothing of its own.
create or replace function pawl.end_crashed_claim(c pawl.entity_claims, lost boolean) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  s pawl.steps;
  hold boolean;
  why jsonb;
begin
  select * into s from pawl.steps x where x.task_id = c.task_id and x.step = c.step and x.index = c.index
    and x.attempt = c.attempt and x.state = 'in_progress';
  if not found then
    return;
  end if;
  why := case when lost then jsonb_build_object('type', 'claim_lost', 'message',
      format('the worker is gone, and somebody else moved the %s it held: look at it, then retry, complete or resolve the step', c.entity))
    else jsonb_build_object('type', 'crash', 'message',
      format('the worker is gone, the %s was released: find out what it did, then retry, complete or resolve the step', c.entity)) end;
  if exists (select from pawl.tasks t where t.task_id = s.task_id and pawl.is_final(t.state)) then
    update pawl.steps x set state = 'cancelled', revision = x.revision + 1, worker = null, due_at = null, state_since = at, error = why
    where x.task_id = s.task_id and x.step = s.step and x.index = s.index;
    perform pawl.look_again(s.task_id) where exists (select from pawl.step_identities);
    return;
  end if;
  hold := lost or (select ts.on_crash = 'hold' from pawl.template_steps ts where ts.template_id = s.template_id and ts.step = s.step);
  if hold then
    update pawl.steps x set state = 'waiting', revision = x.revision + 1, worker = null, due_at = null, state_since = at, error = why
    where x.task_id = s.task_id and x.step = s.step and x.index = s.index;
    perform pawl.settle_tasks(array[s.task_id]);
  else
    perform pawl.settle_step_results(array[(s.task_id, s.step, s.index, s.attempt, 'failed', null,
      jsonb_build_object('type', 'crash', 'message', 'the worker is gone, its claim was released', 'retryable', true),
      s.worker, null)::pawl.step_result]);
  end if;
end $$;
