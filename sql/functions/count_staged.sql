-- does: counts tasks down when every hop goes through its queue: those with a step that became ready are sent to the
--   step-enqueuer, those at their end to the finalizer. Returns the others, for settle_tasks: an end with a failed step, and
--   tasks that were ended before.
-- called by: settle_step_results in staged mode.
-- locks: nothing more: the tasks are locked.
-- raises: nothing of its own.
create or replace function pawl.count_staged(ids uuid[], done int[], active int[], slow uuid[]) returns uuid[]
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  ready uuid[];
  ended uuid[];
  others uuid[];
begin
  with tally as materialized (select * from unnest(ids, done, active) u(task_id, done, active)
    where slow is null or not u.task_id = any (slow)),
  counted as (
    update pawl.tasks t set open_count = t.open_count - u.done, active_count = t.active_count - u.done + u.active,
      state = u.next, revision = t.revision + (t.state <> u.next)::int,
      state_since = case when t.state <> u.next then at else t.state_since end
    from (select y.*, pawl.open_state(x.open_count - y.done, x.active_count - y.done + y.active, x.held_count,
        x.retrying_count, x.waiting_count, x.failed_count) as next
      from tally y cross join lateral (select z.* from pawl.tasks z where z.task_id = y.task_id offset 0) x) u
    where t.task_id = u.task_id and (t.open_count > u.done or t.failed_count = 0) and not pawl.is_final(t.state)
    returning t.task_id, t.open_count, u.active)
  select (select array_agg(u.task_id) from tally u where not exists (select from counted c where c.task_id = u.task_id)),
    (select array_agg(c.task_id) from counted c where c.active > 0),
    (select array_agg(c.task_id) from counted c where c.open_count = 0)
  into others, ready, ended;
  perform pawl.send_step_enqueue(ready, 'ready');
  perform pawl.send_task_finalization(ended, 'no open step');
  return others;
end $$;
