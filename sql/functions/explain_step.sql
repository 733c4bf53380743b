-- does: says of one step that is not final, or that failed, why it does not move and who will move it. Where it says "then",
--   explain_task has the time beside it, as until.
-- called by: explain_task. place: its message, all null when there is none.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.explain_step(s pawl.steps, msg_id bigint, visible_at timestamptz, ahead bigint) returns text
language plpgsql stable as $$
declare
  claim pawl.entity_claims;
  needs text;
  holder text;
  failure text := concat_ws(': ', s.error->>'type', left(s.error->>'message', 300));
  gone text := case when msg_id is null and s.state in ('enqueued', 'in_progress')
    and pawl.queue_table(s.queue) is null then pawl.explain_queue(s.queue) end;
begin
  if s.state = 'pending' and exists (select from pawl.tasks t where t.task_id = s.task_id and t.state = 'pending') then
    return 'its task has not begun';
  end if;
  case s.state
    when 'in_progress' then
      select * into claim from pawl.entity_claims c where c.task_id = s.task_id and c.step = s.step and c.index = s.index;
      if found then
        return format('%s works on it under a claim on %s %s%s; when its lease ends the janitor of the entity''s module ends it',
          s.worker, claim.entity, claim.entity_id, case when claim.revoked_at is not null then ' (revoked)' else '' end);
      end if;
      return case when gone is not null then gone
        when msg_id is null then format('%s had begun it, but its message is gone: the reconciler ends this attempt', s.worker)
        when visible_at <= clock_timestamp() then format('the lease of %s is over: the next worker that reads the queue takes it', s.worker)
        when s.due_at is null then format('%s works on it until then, or longer with its heartbeats', s.worker)
        else format('%s works on it and has until then', s.worker) end
        -- A worker that leaves a step to others writes nothing: only the deliveries tell.
        || case when s.deliveries > 1 then format('; delivery %s: before, workers ended, or had no handler %s and left it to others',
          s.deliveries, s.handler) else '' end
        || coalesce('; the attempt before failed: ' || nullif(failure, ''), '');
    when 'enqueued' then
      return case when gone is not null then gone
        when msg_id is null then 'its message is gone: the reconciler ends this attempt'
        when (select q.paused from pawl.queues q where q.queue = s.queue) then format('queue %s is paused', s.queue)
        when visible_at > clock_timestamp() then format('a worker has read it from queue %s without beginning it; it is back then', s.queue)
        else format('waits for a worker of queue %s, %s messages are before it', s.queue, ahead)
          || coalesce('; ' || pawl.explain_unread(s.queue, interval '10 s'), '') end
        || coalesce('; the attempt before failed: ' || nullif(failure, ''), '');
    when 'waiting_for_retry' then
      return format('attempt %s failed (%s); the next one begins then', s.attempt, coalesce(nullif(failure, ''), 'without a reason'));
    when 'waiting' then
      select format('step %s of task %s holds its key', i.step, i.task_id) into holder
      from pawl.step_key_waiters w join pawl.step_identities i on i.scope = w.scope and i.key = w.key
      where w.task_id = s.task_id and w.step = s.step and w.index = s.index;
      return coalesce(holder, case when s.error is not null
        then 'a crash may have left its effect half done: a person decides (retry, complete or resolve the step)'
        else 'waits for its key' end);
    when 'pending' then
      if exists (select from pawl.held_steps h where h.task_id = s.task_id and h.step = s.step and h.index = s.index
        and h.released_at is null) then
        return pawl.explain_gate(s.queue);
      end if;
      select string_agg(format('%s (%s)', f.step, f.state), ', ' order by f.step) into needs
      from pawl.template_edges e join pawl.steps f on f.task_id = s.task_id and f.step = e.parent and f.index = 0
      where e.template_id = s.template_id and e.child = s.step
        and not (f.state in ('complete', 'resolved_manually') or (f.state = 'skipped' and e.accepts_skipped));
      return coalesce('needs ' || needs, 'is ready: the step-enqueuer starts it');
    else
      return format('failed: %s', coalesce(s.error->>'message', s.error->>'type', 'without a reason'));
  end case;
end $$;
