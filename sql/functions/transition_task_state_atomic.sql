-- does: compare-and-swap of a task's open state: moves it only if it is in the state named, only along a legal transition,
--   and only to what follows from its counters. Returns {task_id, moved, state}: moved false and the present state when
--   somebody was quicker. The processor is kept for the audit, never checked.
-- called by: tests and tools; the engine evaluates states within its own functions.
-- locks: the task.
-- raises: PW001 for an illegal transition, PW020 for an unknown task, PW021 for a task before its start or whose steps are being built, a state that ends a task or that does not follow.
create or replace function pawl.transition_task_state_atomic(task_id uuid, from_state pawl.task_state, to_state pawl.task_state,
  processor text default null) returns jsonb language plpgsql set jit = off as $$
declare
  task pawl.tasks;
begin
  perform set_config('pawl.processor', coalesce(processor, ''), true);
  select * into task from pawl.tasks t where t.task_id = transition_task_state_atomic.task_id for no key update;
  if not found then
    raise exception 'there is no task %', coalesce(task_id::text, 'null') using errcode = 'PW020',
      hint = 'pawl task list shows the tasks that are kept.';
  elsif task.state is distinct from from_state or task.state = to_state then
    return jsonb_build_object('task_id', task_id, 'moved', false, 'state', task.state);
  elsif from_state = 'pending' then
    perform pawl.refuse_command(format('task %s has not begun', task_id), 'Its start time begins it, and its deadline with it.');
  elsif from_state = 'initializing' then
    perform pawl.refuse_command(format('the steps of task %s are being built', task_id), 'It begins when all are there.');
  elsif pawl.is_final(to_state) then
    perform pawl.refuse_command(format('a task does not become %s by itself', to_state), 'Use cancel_task or resolve_task; the engine finalizes.');
  elsif to_state is distinct from 'initializing' and not pawl.is_final(task.state) and to_state is distinct from (case
    when task.failed_count > 0 and task.active_count + task.held_count + task.retrying_count + task.waiting_count = 0
      and (select p.on_failure = 'hold' from pawl.templates p where p.template_id = task.template_id) then 'blocked_by_failures'
    else pawl.open_state(task.open_count, task.active_count, task.held_count, task.retrying_count, task.waiting_count, task.failed_count) end) then
    perform pawl.refuse_command(format('%s does not follow from the steps of task %s', coalesce(to_state::text, 'null'), task_id), 'The state is a function of the counters.');
  end if;
  update pawl.tasks t set state = to_state, revision = t.revision + 1, state_since = pawl.now() where t.task_id = task.task_id;
  return jsonb_build_object('task_id', task_id, 'moved', true, 'state', to_state);
end $$;
