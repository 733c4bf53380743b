-- does: fires tasks one by one, after one of them raised: what one raises is undone, and the task put off for a minute, with
--   its steps, so that neither it nor those behind it are tried again at once. Bounded as fire_tasks is; what raised counts as
--   well. raised is {task_id, sqlstate, message} of one.
-- called by: fire_due.
-- locks: as fire_tasks, task by task in the order of their keys: the end of a task locks its identity.
-- raises: what says nothing about one task.
create or replace function pawl.fire_alone(ids uuid[], sizes int[], out fired int, out put_off int, out raised jsonb)
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  bound int := (select e.max_steps_per_transaction from pawl.engine_settings e);
  one record;
  size bigint := 0;
  free boolean;
begin
  fired := 0;
  put_off := 0;
  for one in
    select u.task_id, u.size from unnest(ids, sizes) u(task_id, size)
    cross join lateral (select x.scope, x.key from pawl.tasks x where x.task_id = u.task_id offset 0) t
    order by t.scope, t.key, u.task_id
  loop
    exit when size > 0 and size + one.size > bound;
    begin
      free := pawl.fire_tasks(array[one.task_id], array[one.size]) > 0;
      fired := fired + free::int;
    exception when others then
      if pawl.concerns_all(sqlstate) then
        raise;
      end if;
      raised := jsonb_build_object('task_id', one.task_id, 'sqlstate', sqlstate, 'message', sqlerrm);
      perform from pawl.tasks t where t.task_id = one.task_id for no key update skip locked;
      free := found;
      if free then
        put_off := put_off + 1;
        update pawl.tasks t set due_at = at + interval '1 minute' where t.task_id = one.task_id and t.due_at <= at;
        update pawl.steps s set due_at = at + interval '1 minute' where s.task_id = one.task_id and s.due_at <= at;
      end if;
    end;
    size := size + case when free then one.size else 0 end;
  end loop;
end $$;
