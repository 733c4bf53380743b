-- does: the results that did not simply complete a step: failures end their attempt (back-off or error), what is older or
--   no longer open is absorbed, what is newer or unknown is a dead letter. touched are the tasks to settle: those with a failed
--   step, and those whose absorbed result asks for a new evaluation. messages are those whose results ended an attempt.
-- called by: settle_step_results.
-- locks: steps of the locked tasks.
-- raises: nothing of its own.
create or replace function pawl.settle_odd_step_results(results pawl.step_result[], applied bigint[], out touched uuid[], out messages bigint[])
language plpgsql as $$
declare
  at timestamptz := pawl.now();
  r record;
  s pawl.steps;
  limits pawl.template_steps;
  again boolean;
begin
  touched := '{}';
  for r in select u.* from unnest(results) with ordinality u(task_id, step, index, attempt, status, result, error, worker, msg_id, ord)
    where applied is null or not u.ord = any (applied) order by u.ord
  loop
    select * into s from pawl.steps x where x.task_id = r.task_id and x.step = r.step and x.index = r.index;
    if not found or r.attempt > s.attempt then
      insert into pawl.dead_letters (queue, msg_id, message, reason, task_id, step)
      values ('orchestration_step_results', r.msg_id, to_jsonb(r) - 'msg_id' - 'ord',
        case when s.task_id is null then 'result of an unknown step' else 'result of an attempt that has not begun' end, r.task_id, r.step);
    elsif r.attempt = s.attempt and s.state in ('in_progress', 'enqueued') and r.status <> 'complete' then
      select * into limits from pawl.template_steps ts where ts.template_id = s.template_id and ts.step = s.step;
      again := r.status = 'failed' and s.failures + 1 < limits.max_attempts and coalesce((r.error->>'retryable')::boolean, true)
        and not exists (select from pawl.tasks t where t.task_id = r.task_id and pawl.is_final(t.state));
      update pawl.steps x set
        state = case when again then 'waiting_for_retry' else 'error' end::pawl.step_state,
        revision = x.revision + case when x.state = 'enqueued' then 2 else 1 end,
        failures = x.failures + 1, worker = null, state_since = at, error = r.error,
        deliveries = greatest(x.deliveries, 1),
        due_at = case when again then at + pawl.retry_delay(limits, x.failures + 1, r.error) end
      where x.task_id = r.task_id and x.step = r.step and x.index = r.index;
      if again then
        perform pawl.announce_due();
      end if;
      touched := touched || r.task_id;
      messages := messages || r.msg_id;
    else
      insert into pawl.absorbed (queue, msg_id, task_id, step, index, attempt, reason)
      values ('orchestration_step_results', r.msg_id, r.task_id, r.step, r.index, r.attempt,
        case when r.attempt < s.attempt then 'result of an older attempt' else 'step is ' || s.state end);
      touched := touched || r.task_id;
    end if;
  end loop;
end $$;
