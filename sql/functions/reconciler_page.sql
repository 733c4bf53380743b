-- does: the next page of the reconciler: open tasks after one, page at most and about 20 steps for each of these (one task
--   with all its steps at least), among at most 20 times as many tasks. last is where it ends, null at the end of the table.
-- called by: reconcile.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.reconciler_page(after uuid, page int, out open uuid[], out last uuid) language plpgsql stable as $$
declare
  found_count int;
begin
  -- Stops as soon as the page is full: where most tasks are open, it is soon.
  select coalesce(array_agg(w.task_id order by w.task_id) filter (where w.before < page * 20), '{}'), count(*) into open, found_count
  from (
    select o.task_id, sum(x.step_count) over (order by o.task_id) - x.step_count as before
    from (
      select p.task_id, p.template_id
      from (select t.task_id, t.template_id, t.finalized_at from pawl.tasks t where t.task_id > after
        order by t.task_id limit page * 20) p
      where p.finalized_at is null order by p.task_id limit page) o
    join pawl.templates x on x.template_id = o.template_id) w;
  last := case when found_count = page or cardinality(open) < found_count then open[cardinality(open)]
    else (select t.task_id from pawl.tasks t where t.task_id > after order by t.task_id offset page * 20 - 1 limit 1) end;
end $$;
