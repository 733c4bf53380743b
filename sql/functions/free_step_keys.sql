-- does: what the end of steps means for their keys: a completed step keeps its key with its result until the key's window
--   is over, any other end gives it up. Those who wait are woken: returns their tasks that are free, now locked, which the
--   caller settles; for the others a message asks to look again. A key at work elsewhere is looked at again as well: its
--   holder cannot be told from a waiter that is being added unseen.
-- called by: end_step_keys, attach_steps, free_task_keys, operator functions that end a single step.
-- locks: identity rows skip locked, then the waiters' tasks by id, skip locked.
-- raises: nothing.
create or replace function pawl.free_step_keys(refs pawl.step_ref[]) returns uuid[]
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  k record;
  held pawl.step_identities;
  waiting uuid[] := '{}';
  free uuid[];
begin
  for k in
    select x.*, x.state in ('complete', 'resolved_manually') as done from pawl.step_keys(refs) x
    where x.key is not null and x.state in ('complete', 'resolved_manually', 'error', 'cancelled', 'skipped')
    order by x.scope, x.key collate "C"
  loop
    select * into held from pawl.step_identities i where i.scope = k.scope and i.key = k.key for update skip locked;
    if not found then
      perform pawl.look_again(k.task_id) where exists (select from pawl.step_identities i where i.scope = k.scope
        and i.key = k.key and i.task_id = k.task_id and i.step = k.step and i.index = k.index);
      continue;
    end if;
    continue when (held.task_id, held.step, held.index) <> (k.task_id, k.step, k.index);
    if held.status = 'running' and held.expires_at is null then
      update pawl.step_identities i set status = case when k.done then 'completed' else i.status end,
        expires_at = case when k.done then at + (select coalesce(p.dedup_window, pawl.task_retention(p.template_id))
          from pawl.tasks t join pawl.templates p on p.template_id = t.template_id where t.task_id = k.task_id) else at end
      where i.scope = k.scope and i.key = k.key;
    end if;
    waiting := waiting || array(select w.task_id from pawl.step_key_waiters w where w.scope = k.scope and w.key = k.key);
  end loop;
  if cardinality(waiting) = 0 then
    return '{}';
  end if;
  free := array(select t.task_id from pawl.tasks t where t.task_id = any (waiting)
    order by t.task_id for no key update skip locked);
  perform pawl.send_step_enqueue(array(select distinct w from unnest(waiting) w where not w = any (free)), 'key');
  return free;
end $$;
