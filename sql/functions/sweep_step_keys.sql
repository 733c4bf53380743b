-- does: forgets step keys whose window is over or whose holder is gone, unless somebody waits for them. Returns how many.
-- called by: sweep.
-- locks: identity rows, skip locked.
-- raises: nothing.
create or replace function pawl.sweep_step_keys(quantity int default 1000) returns int language plpgsql as $$
declare
  gone int;
begin
  -- Steps and waiters are read as of the statement's begin. A key that was taken over since then, perhaps by a step that is
  -- younger, is told by its holder, which is asked once more under the lock.
  with over as materialized (
    select i.scope, i.key, (i.task_id, i.step, i.index, i.expires_at) as holder from pawl.step_identities i
    where (i.expires_at <= pawl.now() or (i.expires_at is null and not exists (select from pawl.steps s
        where s.task_id = i.task_id and s.step = i.step and s.index = i.index)))
      and not exists (select from pawl.step_key_waiters w where w.scope = i.scope and w.key = i.key)
    order by i.scope, i.key limit quantity)
  delete from pawl.step_identities i where (i.scope, i.key) in (
    select l.scope, l.key from over o join pawl.step_identities l on l.scope = o.scope and l.key = o.key
    where (l.task_id, l.step, l.index, l.expires_at) is not distinct from o.holder for update of l skip locked);
  get diagnostics gone = row_count;
  return gone;
end $$;
