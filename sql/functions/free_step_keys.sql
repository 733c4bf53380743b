-- does: what the end of steps means for their keys: a completed step keeps its key with its result until the key's window
--   is over, any other end gives it up; one that waited for its key waits no longer. Those who wait are woken: returns their
--   tasks that are free, now locked, which the caller settles: at most 200, and as many as their steps fit one transaction.
--   When more wait, a message asks to look at the holder's task, which goes on from there; held tasks get messages of their
--   own. A key at work elsewhere is looked at again as well: its holder cannot be told from a waiter that is being added unseen.
-- called by: end_step_keys, attach_steps, free_task_keys, operator functions that end a single step.
-- locks: identity rows skip locked, then the waiters' tasks, skip locked.
-- raises: nothing.
create or replace function pawl.free_step_keys(refs pawl.step_ref[]) returns uuid[]
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  most int := 200;
  bound int := (select e.max_steps_per_transaction from pawl.engine_settings e);
  k record;
  held pawl.step_identities;
  one record;
  size bigint := 0;
  more boolean;
  free uuid[] := '{}';
  others uuid[] := '{}';
begin
  for k in
    select x.*, x.state in ('complete', 'resolved_manually') as done from pawl.step_keys(refs) x
    where x.key is not null and x.state in ('complete', 'resolved_manually', 'error', 'cancelled', 'skipped')
    order by x.scope, x.key collate "C"
  loop
    delete from pawl.step_key_waiters w where w.scope = k.scope and w.key = k.key
      and w.task_id = k.task_id and w.step = k.step and w.index = k.index;
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
    more := false;
    for one in
      select w.task_id, (select p.step_count from pawl.templates p where p.template_id = t.template_id) as size
      from pawl.step_key_waiters w
      cross join lateral (select from pawl.steps x where x.task_id = w.task_id and x.step = w.step and x.index = w.index
        and x.state = 'waiting' offset 0) s
      cross join lateral (select x.template_id from pawl.tasks x where x.task_id = w.task_id for no key update skip locked) t
      where w.scope = k.scope and w.key = k.key and not w.task_id = any (free) order by w.task_id
    loop
      continue when one.task_id = any (free);
      more := cardinality(free) = most or (cardinality(free) > 0 and size + one.size > bound);
      exit when more;
      free := free || one.task_id;
      size := size + one.size;
    end loop;
    others := others || case when more then array[k.task_id] else array(
      select w.task_id from pawl.step_key_waiters w
      cross join lateral (select from pawl.steps x where x.task_id = w.task_id and x.step = w.step and x.index = w.index
        and x.state = 'waiting' offset 0) s
      where w.scope = k.scope and w.key = k.key and not w.task_id = any (free)) end;
  end loop;
  perform pawl.send_step_enqueue(array(select distinct o from unnest(others) o), 'key');
  return free;
end $$;
