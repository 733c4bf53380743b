-- does: recounts how many needed steps each pending step still waits for; the short way counts down, operators and
--   skipped steps do not.
-- called by: settle_tasks.
-- locks: steps of the locked tasks, only those whose count was wrong.
-- raises: nothing.
create or replace function pawl.recount_needs(ids uuid[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
begin
  update pawl.steps s set needs_open = w.open
  from (
    select c.task_id, c.step, c.index, count(*) filter (where not (f.state in ('complete', 'resolved_manually')
      or (f.state = 'skipped' and e.accepts_skipped))) as open
    from pawl.steps c
    join pawl.template_edges e on e.template_id = c.template_id and e.child = c.step
    cross join lateral (select p.state from pawl.steps p -- offset 0: by its whole key
      where p.task_id = c.task_id and p.step = e.parent and p.index = 0 offset 0) f
    where c.task_id = any (ids) and c.state = 'pending'
    group by c.task_id, c.step, c.index) w
  where s.task_id = w.task_id and s.step = w.step and s.index = w.index and s.needs_open <> w.open;
end $$;
