-- does: absorbs the message of a step whose task has ended while an earlier delivery acted under a claim, and cancels the step.
-- called by: begin_claimed_delivery, which has locked the step.
-- locks: the message.
-- raises: nothing of its own.
create or replace function pawl.drop_ended_delivery(queue text, d pawl.delivery, s pawl.steps) returns text language plpgsql as $$
begin
  execute format('select from pawl_queues.%I(array[$1], array[$2])', 'delete_' || queue) using d.msg_id, d.read_ct;
  insert into pawl.absorbed (queue, msg_id, task_id, step, index, attempt, reason)
  values (queue, d.msg_id, s.task_id, s.step, s.index, s.attempt, 'task has ended');
  update pawl.steps x set state = 'cancelled', revision = x.revision + 1, worker = null, due_at = null, state_since = pawl.now(),
    error = '{"type": "task_ended", "message": "the task ended before the step"}'
  where x.task_id = s.task_id and x.step = s.step and x.index = s.index;
  perform pawl.look_again(s.task_id) where exists (select from pawl.step_identities); -- who waits for its key waits no longer
  return 'failed';
end $$;
