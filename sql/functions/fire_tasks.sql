-- does: fires what is due of tasks: of the first ones that nobody holds, as many as their steps fit one transaction, at
--   least one. sizes are their numbers of steps: a start or a retry looks at all of them. A step that somebody holds is just being
--   reported (hand_in_step_results): it is left for the next look, and so is its task when what is due would end that step.
--   Returns how many tasks it took: those of which something was due.
-- called by: fire_due, fire_alone: in a sub-transaction, whose locks are its own, since updating a row that was locked
--   outside costs a MultiXact.
-- locks: tasks and their entity claims, skip locked, then their steps, those whose timeout is over skip locked.
-- raises: what a task raises.
create or replace function pawl.fire_tasks(ids uuid[], sizes int[]) returns int
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  bound int := (select e.max_steps_per_transaction from pawl.engine_settings e);
  claims boolean := exists (select from pawl.entity_claims);
  one record;
  mine uuid[] := '{}';
  size bigint := 0;
  whole boolean;
  free int;
  late uuid[];
  starting uuid[];
  retries pawl.step_ref[];
  timeouts pawl.step_result[];
begin
  -- Locked one by one, before they count: what somebody holds takes no other one's place. No join, which might take them in
  -- another order, or all before the first.
  for one in
    select t.task_id, u.size, t.state, t.due_at <= at as due,
      (select p.on_failure = 'fail_fast' from pawl.templates p where p.template_id = t.template_id) as fast
    from unnest(ids, sizes) u(task_id, size)
    cross join lateral (select x.* from pawl.tasks x where x.task_id = u.task_id for no key update skip locked) t
  loop
    continue when claims and cardinality(pawl.lock_claims(array[one.task_id])) = 0;
    whole := one.due and one.state <> 'pending' or one.fast and exists (select from pawl.steps s where s.task_id = one.task_id
      and s.due_at <= at and s.state in ('in_progress', 'enqueued'));
    select count(*) into free from (select from pawl.steps s where s.task_id = one.task_id and s.state in ('in_progress', 'enqueued')
      and (s.due_at <= at or whole and s.due_at is not null) for no key update skip locked) l;
    if whole then
      continue when free < (select count(*) from pawl.steps s where s.task_id = one.task_id and s.state in ('in_progress', 'enqueued')
        and s.due_at is not null);
    else
      continue when free = 0 and one.due is not true and not exists (select from pawl.steps s where s.task_id = one.task_id
        and s.due_at <= at and s.state = 'waiting_for_retry');
    end if;
    exit when mine <> '{}' and size + one.size > bound;
    mine := mine || one.task_id;
    size := size + one.size;
  end loop;
  if mine = '{}' then
    return 0;
  end if;
  late := array(select t.task_id from pawl.tasks t where t.task_id = any (mine) and t.due_at <= at
    and t.state <> 'pending' and not pawl.is_final(t.state));
  if cardinality(late) > 0 then
    perform pawl.end_tasks(late, 'timed_out', '{"type": "timeout", "message": "the task ran longer than its timeout"}');
  end if;
  starting := array(select t.task_id from pawl.tasks t where t.task_id = any (mine) and t.state = 'pending' and t.due_at <= at);
  if cardinality(starting) > 0 then
    perform pawl.start_tasks(starting);
  end if;
  timeouts := array(select (s.task_id, s.step, s.index, s.attempt, 'failed', null,
      '{"type": "timeout", "message": "the attempt ran longer than the step''s timeout"}'::jsonb, s.worker, null)::pawl.step_result
    from pawl.steps s where s.task_id = any (mine) and s.due_at <= at and s.state in ('in_progress', 'enqueued')
    order by s.due_at, s.task_id, s.step limit bound for no key update skip locked);
  if cardinality(timeouts) > 0 then
    perform pawl.settle_step_results(timeouts);
  end if;
  retries := array(select (s.task_id, s.step, s.index)::pawl.step_ref
    from pawl.steps s where s.task_id = any (mine) and s.due_at <= at and s.state = 'waiting_for_retry'
    order by s.due_at, s.task_id, s.step limit bound);
  if cardinality(retries) > 0 then
    perform pawl.start_attempts(retries);
    perform pawl.settle_tasks(array(select distinct r.task_id from unnest(retries) r order by r.task_id));
  end if;
  return cardinality(mine);
end $$;
