-- does: begins the next attempt of ready steps: pending and waiting_for_retry become enqueued, with their messages; steps
--   of a gated queue go behind its gate instead (held_steps, state pending). Returns how many were enqueued.
-- called by: settle_tasks, release_held, fire_due: under the tasks' locks.
-- locks: steps of the locked tasks.
-- raises: nothing of its own.
create or replace function pawl.start_attempts(refs pawl.step_ref[], through_gate boolean default false) returns int
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  gated text[] := case when through_gate then '{}' else array(select q.queue from pawl.queues q where q.gated) end;
  begun pawl.step_ref[];
begin
  if gated <> '{}' then
    with held as (
      update pawl.steps s set state = 'pending', revision = s.revision + (s.state <> 'pending')::int, due_at = null,
        state_since = case when s.state <> 'pending' then at else s.state_since end
      from unnest(refs) r
      where s.task_id = r.task_id and s.step = r.step and s.index = r.index and s.queue = any (gated)
        and s.state in ('pending', 'waiting_for_retry')
      returning s.task_id, s.step, s.index, s.queue, s.attempt)
    insert into pawl.held_steps (task_id, step, index, queue, attempt, held_at)
    select h.task_id, h.step, h.index, h.queue, h.attempt + 1, at from held h
    on conflict (task_id, step, index) do update
      set queue = excluded.queue, attempt = excluded.attempt, held_at = excluded.held_at, released_at = null
      where held_steps.released_at is not null; -- a slot given too late to be freed (take_slots)
  end if;
  with moved as (
    update pawl.steps s set state = 'enqueued', revision = s.revision + 1, attempt = s.attempt + 1, deliveries = 0,
      due_at = null, state_since = at
    from unnest(refs) r
    where s.task_id = r.task_id and s.step = r.step and s.index = r.index
      and s.state in ('pending', 'waiting_for_retry') and s.queue <> all (gated)
    returning s.task_id, s.step, s.index)
  select array_agg((m.task_id, m.step, m.index)::pawl.step_ref) into begun from moved m;
  if begun is not null then
    perform pawl.send_step_messages(begun);
  end if;
  return coalesce(cardinality(begun), 0);
end $$;
