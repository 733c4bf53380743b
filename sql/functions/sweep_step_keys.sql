-- does: forgets step keys whose window is over or whose holder is gone, unless somebody waits for them. Returns how many.
-- called by: sweep.
-- locks: identity rows, skip locked.
-- raises: nothing.
create or replace function pawl.sweep_step_keys(quantity int default 1000) returns int language plpgsql as $$
declare
  gone int;
begin
  delete from pawl.step_identities i where (i.scope, i.key) in (
    select l.scope, l.key from pawl.step_identities l
    where (l.expires_at <= pawl.now() or (l.expires_at is null and not exists (select from pawl.steps s
        where s.task_id = l.task_id and s.step = l.step and s.index = l.index)))
      and not exists (select from pawl.step_key_waiters w where w.scope = l.scope and w.key = l.key)
    order by l.scope, l.key limit quantity for update skip locked);
  get diagnostics gone = row_count;
  return gone;
end $$;
