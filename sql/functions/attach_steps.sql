-- does: the step keys of locked tasks. A ready step whose key nobody holds takes it and is left to start; one whose key a
--   completed step holds is complete with that result; one whose key a running step holds waits. What becomes final this
--   way readies or cancels its dependents, which may have keys too: after twenty generations a message asks for the next.
--   Keys of steps that were ended in passing, perhaps by one without a value for its key, are freed at the end.
-- called by: settle_tasks, for templates with step keys.
-- locks: steps of the locked tasks, identity rows skip locked.
-- raises: nothing of its own.
create or replace function pawl.attach_steps(ids uuid[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
begin
  for generation in 1 .. 20 loop
    exit when not pawl.attach_ready_steps(ids);
    if generation = 20 then -- the next one is not ready before its needs are counted
      perform pawl.send_step_enqueue(ids, 'more');
      exit;
    end if;
    perform pawl.cancel_unreachable(ids);
    perform pawl.recount_needs(ids);
  end loop;
  if exists (select from pawl.step_identities) then
    perform pawl.send_step_enqueue(pawl.free_step_keys(array(
      select (s.task_id, s.step, s.index)::pawl.step_ref from pawl.steps s
      where s.task_id = any (ids) and s.state in ('error', 'cancelled', 'skipped', 'resolved_manually'))), 'key');
  end if;
end $$;
