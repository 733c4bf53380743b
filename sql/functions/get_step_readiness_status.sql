-- does: tells of each step of a task whether it may run: how many steps it needs, how many of them satisfy it, and
--   readiness ready, blocked, held, retrying, waiting, running or done; next_at where a time decides.
-- called by: operators, pawl task show.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.get_step_readiness_status(task_id uuid) returns table (step text, index int, state text,
  needs int, satisfied int, readiness text, attempt int, next_at timestamptz) language sql stable as $$
  select s.step, s.index, s.state::text, n.total::int, n.satisfied::int, case
      when s.state in ('complete', 'skipped', 'error', 'cancelled', 'resolved_manually') then 'done'
      when s.state in ('enqueued', 'in_progress') then 'running'
      when s.state = 'waiting_for_retry' then 'retrying'
      when s.state = 'waiting' then 'waiting'
      when n.satisfied < n.total then 'blocked'
      when exists (select from pawl.held_steps h where h.task_id = s.task_id and h.step = s.step and h.index = s.index
        and h.released_at is null) then 'held'
      else 'ready' end, s.attempt, s.due_at
  from pawl.steps s
  cross join lateral (
    select count(*) as total, count(*) filter (where f.state in ('complete', 'resolved_manually')
      or (f.state = 'skipped' and e.accepts_skipped)) as satisfied
    from pawl.template_edges e
    cross join lateral (select p.state from pawl.steps p where p.task_id = s.task_id and p.step = e.parent and p.index = 0 offset 0) f
    where e.template_id = s.template_id and e.child = s.step) n
  where s.task_id = $1
  order by s.step, s.index
$$;
