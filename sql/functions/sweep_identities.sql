-- does: deletes the identities of the next page (20 for each of quantity) whose window is over, which may end before or
--   after the retention of their tasks.
--   last_scope is null at the end of the table.
-- called by: sweep.
-- locks: identity rows, skip locked: a submit that takes one over keeps it.
-- raises: nothing.
create or replace function pawl.sweep_identities(quantity int, after_scope text, after_key text,
  out deleted int, out last_scope text, out last_key text) language plpgsql
set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  seen int;
begin
  with page as materialized (
    select i.scope, i.key, i.expires_at from pawl.task_identities i
    where (i.scope, i.key) > (after_scope, after_key) order by i.scope, i.key limit quantity * 20),
  gone as (
    delete from pawl.task_identities i where (i.scope, i.key) in (
      select l.scope, l.key from page p join pawl.task_identities l on l.scope = p.scope and l.key = p.key
      where l.expires_at <= pawl.now() for update of l skip locked)
    returning 1)
  select (select count(*) from gone), count(*), (array_agg(p.scope order by p.scope desc, p.key desc))[1],
    (array_agg(p.key order by p.scope desc, p.key desc))[1]
  into deleted, seen, last_scope, last_key from page p;
  if seen < quantity * 20 then
    last_scope := null;
    last_key := null;
  end if;
end $$;
