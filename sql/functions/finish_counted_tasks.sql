-- does: makes locked tasks without an open step final: complete, or error when a step failed. One update that passes
--   evaluating_results (both transitions are audited), with the result, then what follows an end (close_tasks).
-- called by: settle_tasks, finalize_tasks: for tasks whose counters were just checked or kept.
-- locks: nothing more: the tasks are locked.
-- raises: nothing of its own.
create or replace function pawl.finish_counted_tasks(ids uuid[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  told uuid[];
begin
  with ends as (
    select t.task_id, t.failed_count > 0 as failed,
      case when t.failed_count = 0 then (select r.result from pawl.task_result(t.task_id, t.template_id) r) end as result,
      case when t.failed_count > 0 then (
        select coalesce(f.error, '{"type": "step_cancelled"}') || jsonb_build_object('step', f.step) from pawl.steps f
        where f.task_id = t.task_id and f.state in ('error', 'cancelled')
        order by f.state = 'cancelled', f.state_since, f.step limit 1) end as error
    from unnest(ids) i(task_id)
    join pawl.tasks t on t.task_id = i.task_id
    where not pawl.is_final(t.state)),
  ended as (
    update pawl.tasks t set state = case when e.failed then 'error' else 'complete' end::pawl.task_state,
      revision = t.revision + case when t.state = 'evaluating_results' then 1 else 2 end,
      open_count = 0, active_count = 0, held_count = 0, retrying_count = 0, waiting_count = 0,
      state_since = at, finalized_at = at, due_at = null, error = e.error,
      result = e.result
    from ends e where t.task_id = e.task_id
    returning t.task_id, t.key is not null or t.reply_to is not null as told)
  select array_agg(e.task_id) into told from ended e where e.told;
  if told is not null then
    perform pawl.close_tasks(told);
  end if;
  perform pawl.announce_finished();
end $$;
