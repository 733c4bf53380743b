-- does: forgets the step keys of the next page (20 for each of quantity) whose window is over or whose holder is gone, unless
--   somebody waits for them. last_scope is null at the end of the table.
-- called by: sweep.
-- locks: identity rows, skip locked.
-- raises: nothing.
create or replace function pawl.sweep_step_identities(quantity int, after_scope text, after_key text,
  out deleted int, out last_scope text, out last_key text) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  moment timestamptz := pawl.now();
  seen int;
begin
  -- Steps and waiters are read as of the statement's begin, each by its whole key ("offset 0": never in a join). A key that was
  -- taken over since then, perhaps by a step that is younger, is told by its holder, which is asked once more under the lock.
  with page as materialized (
    select i.scope, i.key, i.task_id, i.step, i.index, i.expires_at from pawl.step_identities i
    where (i.scope, i.key) > (after_scope, after_key) order by i.scope, i.key limit quantity * 20),
  over as materialized (
    select p.* from page p
    where (p.expires_at <= moment or (p.expires_at is null and not exists (select from pawl.steps s
        where s.task_id = p.task_id and s.step = p.step and s.index = p.index offset 0)))
      and not exists (select from pawl.step_key_waiters w where w.scope = p.scope and w.key = p.key offset 0)),
  gone as (
    delete from pawl.step_identities i where (i.scope, i.key) in (
      select l.scope, l.key from over o join pawl.step_identities l on l.scope = o.scope and l.key = o.key
      where (l.task_id, l.step, l.index, l.expires_at) is not distinct from (o.task_id, o.step, o.index, o.expires_at)
      for update of l skip locked)
    returning 1)
  select (select count(*) from gone), count(*), (array_agg(p.scope order by p.scope desc, p.key desc))[1],
    (array_agg(p.key order by p.scope desc, p.key desc))[1]
  into deleted, seen, last_scope, last_key from page p;
  if seen < quantity * 20 then
    last_scope := null;
    last_key := null;
  end if;
end $$;
