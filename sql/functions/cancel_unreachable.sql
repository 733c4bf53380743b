-- does: cancels what a failed step leaves behind: dependents that can never run (cause dependency_failed), and with
--   on_failure fail_fast every open step. Messages of cancelled steps stay and are absorbed by who reads them. With hold
--   nothing is cancelled: an operator may still resolve the failed step.
-- called by: settle_tasks.
-- locks: steps of the locked tasks.
-- raises: nothing of its own.
create or replace function pawl.cancel_unreachable(ids uuid[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  failed uuid[] := array(select distinct s.task_id from pawl.steps s where s.task_id = any (ids) and s.state in ('error', 'cancelled', 'skipped'));
  fast uuid[];
  gone pawl.step_ref[];
begin
  if cardinality(failed) = 0 then
    return;
  end if;
  fast := array(select distinct s.task_id from pawl.steps s
    join pawl.tasks t on t.task_id = s.task_id
    join pawl.templates p on p.template_id = t.template_id and p.on_failure = 'fail_fast'
    where s.task_id = any (failed) and s.state = 'error');
  -- As in end_tasks: an entity claim that is just committing is seen only by a statement after the lock.
  perform from pawl.steps s where s.task_id = any (fast) and s.state in ('enqueued', 'in_progress')
  order by s.task_id, s.step, s.index for no key update;
  update pawl.steps s set state = 'cancelled', revision = s.revision + 1, worker = null, due_at = null, state_since = at,
    error = '{"type": "fail_fast", "message": "another step of the task failed"}'
  where s.task_id = any (fast) and s.state in ('pending', 'enqueued', 'in_progress', 'waiting_for_retry', 'waiting')
    and not exists (select from pawl.entity_claims c where c.task_id = s.task_id and c.step = s.step and c.index = s.index);
  -- A round for each generation goes on from what the one before has cancelled: each step is looked at once.
  gone := array(select (s.task_id, s.step, s.index)::pawl.step_ref
    from pawl.steps s
    join pawl.tasks t on t.task_id = s.task_id
    join pawl.templates p on p.template_id = t.template_id and p.on_failure <> 'hold'
    where s.task_id = any (failed) and s.state in ('error', 'cancelled', 'skipped'));
  loop
    with unreachable as (
      select distinct on (c.task_id, c.step) c.task_id, c.step, f.step as parent, f.state
      from unnest(gone) g
      cross join lateral (select x.task_id, x.step, x.template_id, x.state from pawl.steps x -- offset 0: by its whole key
        where x.task_id = g.task_id and x.step = g.step and x.index = g.index offset 0) f
      cross join lateral (select x.child from pawl.template_edges x where x.template_id = f.template_id and x.parent = f.step
        and (f.state <> 'skipped' or not x.accepts_skipped) offset 0) e
      cross join lateral (select x.task_id, x.step from pawl.steps x
        where x.task_id = f.task_id and x.step = e.child and x.state = 'pending' offset 0) c
      order by c.task_id, c.step, f.step),
    ended as (
      update pawl.steps s set state = 'cancelled', revision = s.revision + 1, state_since = at,
        error = jsonb_build_object('type', 'dependency_failed', 'message', 'needs ' || u.parent || ', which is ' || u.state)
      from unreachable u
      where s.task_id = u.task_id and s.step = u.step and s.state = 'pending'
      returning s.task_id, s.step, s.index)
    select array_agg((d.task_id, d.step, d.index)::pawl.step_ref) into gone from ended d;
    exit when gone is null;
  end loop;
  delete from pawl.held_steps h using pawl.steps s
  where h.task_id = any (failed) and s.task_id = h.task_id and s.step = h.step and s.index = h.index and s.state = 'cancelled';
end $$;
