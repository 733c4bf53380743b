-- does: the tasks that the clock will move next: due to start, to retry, or past a deadline. Locks them, so that two callers
--   get different ones until their transactions end: by due time, first attempts before retries, then age.
-- called by: operators and tests; fire_due does the same and moves them.
-- locks: tasks, skip locked.
-- raises: nothing.
create or replace function pawl.get_next_ready_tasks(quantity int default 100)
returns table (task_id uuid, state text, correlation_id text, due_at timestamptz) language plpgsql set jit = off as $$
#variable_conflict use_column
declare
  at timestamptz := pawl.now();
  ids uuid[];
begin
  ids := array(select d.task_id from (
      (select t.task_id, t.due_at, false as retry from pawl.tasks t where t.due_at <= at order by t.due_at limit quantity)
      union all
      (select s.task_id, s.due_at, s.attempt > 0 from pawl.steps s where s.due_at <= at order by s.due_at limit quantity)) d
    group by d.task_id order by min(d.due_at), bool_and(d.retry), d.task_id);
  return query
    select l.task_id, l.state::text, l.correlation_id, least(l.due_at,
      (select min(s.due_at) from pawl.steps s where s.task_id = l.task_id and s.due_at is not null))
    from (select t.* from unnest(ids) with ordinality i(id, place) join pawl.tasks t on t.task_id = i.id
      where not pawl.is_final(t.state) order by i.place limit quantity for no key update of t skip locked) l;
end $$;
