-- does: deletes the finished tasks of the next page of tasks whose retention is over, with their steps. Retention counts
--   from the end, but is never shorter than a minute, so that who waits for a result still reads it. Looks at 20 tasks for
--   each that it may delete, and at about as many steps; last is null at the end of the table.
-- called by: sweep.
-- locks: tasks, skip locked.
-- raises: nothing.
create or replace function pawl.sweep_tasks(quantity int, after uuid, out deleted int, out steps int, out last uuid)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  ids uuid[];
  ended timestamptz; -- when the last of them did
  seen int;
  due int;
begin
  deleted := 0;
  steps := 0;
  if quantity < 1 then
    return;
  end if;
  with page as materialized (
    select t.task_id, t.template_id, t.finalized_at from pawl.tasks t where t.task_id > after order by t.task_id limit quantity * 20),
  limits as materialized (
    select u.template_id, x.step_count, at - greatest(pawl.task_retention(u.template_id), interval '1 minute') as before
    from (select distinct p.template_id from page p) u join pawl.templates x on x.template_id = u.template_id),
  over as (
    select p.task_id, p.finalized_at, row_number() over w as place, sum(l.step_count) over w - l.step_count as steps
    from page p join limits l on l.template_id = p.template_id and p.finalized_at <= l.before window w as (order by p.task_id))
  select (select count(*) from page), (select p.task_id from page p order by p.task_id desc limit 1), count(*),
    array_agg(o.task_id order by o.task_id) filter (where o.place <= quantity and o.steps < quantity * 20), max(o.finalized_at)
  into seen, last, due, ids, ended from over o;
  if cardinality(ids) < due then
    last := ids[cardinality(ids)]; -- there is more to delete in this page
  elsif seen < quantity * 20 then
    last := null;
  end if;
  if ids is null then
    return;
  end if;
  -- One that was retried since it was seen is open again, or has a later end: its end is asked once more, under the lock.
  ids := array(select t.task_id from pawl.tasks t where t.task_id = any (ids) and t.finalized_at <= ended
    and not exists (select from pawl.entity_claims c where c.task_id = t.task_id) order by t.task_id for update skip locked);
  delete from pawl.held_steps h where h.task_id = any (ids);
  delete from pawl.reconciler_notes n where n.task_id = any (ids);
  delete from pawl.steps s where s.task_id = any (ids);
  get diagnostics steps = row_count;
  delete from pawl.tasks t where t.task_id = any (ids);
  get diagnostics deleted = row_count;
end $$;
