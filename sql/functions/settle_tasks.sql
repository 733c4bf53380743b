-- does: brings locked, open tasks to rest whatever happened to their steps: applies the failure policy, cancels what can
--   never run, starts what is ready, recounts, evaluates, finishes. Repeating it changes nothing. Everything that is not
--   the short way of settle_step_results ends here: failures, clock, operators, reconciler, gates, keys.
-- called by: settle_step_results, create_tasks, settle_asked_tasks, fire_tasks, repair_tasks, every operator function.
-- locks: steps of the locked tasks.
-- raises: nothing of its own.
create or replace function pawl.settle_tasks(ids uuid[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  settings pawl.engine_settings;
  refs pawl.step_ref[];
  ended uuid[];
begin
  select * into settings from pawl.engine_settings;
  ids := array(select t.task_id from pawl.tasks t where t.task_id = any (ids) and not pawl.is_final(t.state)
    and t.state not in ('initializing', 'pending'));
  if cardinality(ids) = 0 then
    return;
  end if;
  perform pawl.cancel_unreachable(ids);
  perform pawl.recount_needs(ids);

  if exists (select from pawl.tasks t join pawl.templates p on p.template_id = t.template_id
    where t.task_id = any (ids) and p.has_special_steps) then
    perform pawl.attach_steps(ids);
  end if;
  refs := array(select (s.task_id, s.step, s.index)::pawl.step_ref from pawl.steps s
    where s.task_id = any (ids) and s.state = 'pending' and s.needs_open = 0
      and not exists (select from pawl.held_steps h where h.task_id = s.task_id and h.step = s.step and h.index = s.index
        and h.released_at is null)
    order by s.task_id, s.step limit settings.max_steps_per_transaction);
  if cardinality(refs) > 0 then
    perform pawl.start_attempts(refs);
    if cardinality(refs) = settings.max_steps_per_transaction then
      perform pawl.send_step_enqueue(ids, 'more');
    end if;
  end if;

  ended := pawl.recount_tasks(ids, settings.staged);
  if settings.staged then
    perform pawl.send_task_finalization(ended, 'no open step');
  elsif ended is not null then
    perform pawl.finish_counted_tasks(ended);
  end if;
end $$;
