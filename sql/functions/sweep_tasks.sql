-- does: deletes the finished tasks of the next page of tasks whose retention is over, with their steps. Retention counts
--   from the end, but is never shorter than a minute, so that who waits for a result still reads it. last is null at the end
--   of the table. A batch deletes at most about 20 steps for each task of the page.
-- called by: sweep.
-- locks: tasks, skip locked.
-- raises: nothing.
create or replace function pawl.sweep_tasks(quantity int, after uuid, out deleted int, out steps int, out last uuid)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  at timestamptz := pawl.now();
  page uuid[] := array(select t.task_id from pawl.tasks t where t.task_id > after order by t.task_id limit quantity);
  ids uuid[];
begin
  if cardinality(page) = quantity and quantity > 0 then
    last := page[quantity];
  end if;
  with over as materialized (
    select t.task_id, sum(p.step_count) over (order by t.task_id) - p.step_count as before
    from pawl.tasks t
    join (select u.template_id, x.step_count, greatest(pawl.task_retention(u.template_id), interval '1 minute') as keep
      from (select distinct d.template_id from pawl.tasks d where d.task_id = any (page)) u
      join pawl.templates x on x.template_id = u.template_id) p on p.template_id = t.template_id
    where t.task_id = any (page) and t.finalized_at + p.keep <= at
      and not exists (select from pawl.entity_claims c where c.task_id = t.task_id))
  select array_agg(o.task_id order by o.task_id) into ids from over o where o.before < quantity * 20;
  if exists (select from pawl.tasks t where t.task_id = any (page) and t.task_id > ids[cardinality(ids)]
    and cardinality(ids) < cardinality(page)) and cardinality(ids) > 0 then
    last := ids[cardinality(ids)]; -- large tasks: the rest of the page comes next
  end if;
  ids := array(select t.task_id from pawl.tasks t where t.task_id = any (ids) order by t.task_id for update skip locked);
  delete from pawl.held_steps h where h.task_id = any (ids);
  delete from pawl.reconciler_notes n where n.task_id = any (ids);
  delete from pawl.steps s where s.task_id = any (ids);
  get diagnostics steps = row_count;
  delete from pawl.tasks t where t.task_id = any (ids);
  get diagnostics deleted = row_count;
end $$;
