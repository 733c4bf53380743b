-- does: finds steps that wait for a key whose holder has ended, expired or is gone, and asks to look at their tasks again;
--   forgets waiters that no longer wait. Returns how many tasks it asked for.
-- called by: reconcile.
-- locks: waiters, skip locked.
-- raises: nothing.
create or replace function pawl.reconcile_step_keys(quantity int default 500) returns int language plpgsql as $$
declare
  stuck uuid[];
begin
  delete from pawl.step_key_waiters w where (w.scope, w.key, w.task_id, w.step, w.index) in (
    select l.scope, l.key, l.task_id, l.step, l.index from pawl.step_key_waiters l
    where not exists (select from pawl.steps s where s.task_id = l.task_id and s.step = l.step and s.index = l.index
      and s.state = 'waiting')
    limit quantity for update skip locked);
  stuck := array(
    select distinct w.task_id from pawl.step_key_waiters w
    left join pawl.step_identities i on i.scope = w.scope and i.key = w.key
    left join pawl.steps h on h.task_id = i.task_id and h.step = i.step and h.index = i.index
    where h.task_id is null or i.expires_at is not null
      or h.state in ('complete', 'resolved_manually', 'error', 'cancelled', 'skipped') limit quantity);
  perform pawl.send_step_enqueue(stuck, 'key');
  return cardinality(stuck);
end $$;
