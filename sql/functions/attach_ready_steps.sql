-- does: one pass of attach_steps over the ready and the waiting steps with a key. A step whose key another transaction
--   works with waits too, and its task is looked at again in a moment. Returns whether a step became final.
-- called by: attach_steps.
-- locks: steps of the locked tasks, identity rows skip locked.
-- raises: nothing of its own.
create or replace function pawl.attach_ready_steps(ids uuid[]) returns boolean
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  at timestamptz := pawl.now();
  most int := 500; -- keys taken in one pass: a new one costs an entry of the server's lock table
  taken int := 0;
  ended boolean := false;
  busy uuid[] := '{}';
  c record;
  held pawl.step_identities;
  done pawl.steps;
begin
  for c in
    select k.* from pawl.step_keys(array(
      select (s.task_id, s.step, s.index)::pawl.step_ref from pawl.steps s
      where s.task_id = any (ids) and (s.state = 'waiting' or (s.state = 'pending' and s.needs_open = 0
        and not exists (select from pawl.held_steps h where h.task_id = s.task_id and h.step = s.step and h.index = s.index
          and h.released_at is null))))) k
    where k.state = 'pending' or exists (select from pawl.step_key_waiters w where w.scope = k.scope and w.key = k.key
      and w.task_id = k.task_id and w.step = k.step and w.index = k.index)
    order by k.state = 'pending', k.scope, k.key collate "C", k.task_id, k.step, k.index -- who waited is first
  loop
    if c.key is null then
      update pawl.steps s set state = 'error', revision = s.revision + 1, state_since = at, error =
        '{"type": "key_missing", "message": "the input has no value for the key of the step, or the key is longer than 255 bytes"}'
      where s.task_id = c.task_id and s.step = c.step and s.index = c.index;
      ended := true;
      continue;
    end if;
    held := case when taken < most then pawl.take_step_key((c.task_id, c.step, c.index), c.scope, c.key) end;
    select * into done from pawl.steps s where s.task_id = held.task_id and s.step = held.step and s.index = held.index
      and s.state in ('complete', 'resolved_manually');
    if (held.task_id, held.step, held.index) = (c.task_id, c.step, c.index) then
      taken := taken + 1;
      if c.state = 'waiting' then
        update pawl.steps s set state = 'pending', revision = s.revision + 1, state_since = at
        where s.task_id = c.task_id and s.step = c.step and s.index = c.index;
      end if;
    elsif done.task_id is not null then
      update pawl.steps s set state = 'complete', revision = s.revision + 1, state_since = at, result = done.result, error = null
      where s.task_id = c.task_id and s.step = c.step and s.index = c.index;
      ended := true;
    else
      insert into pawl.step_key_waiters (scope, key, task_id, step, index)
      values (c.scope, c.key, c.task_id, c.step, c.index) on conflict do nothing;
      update pawl.steps s set state = 'waiting', revision = s.revision + 1, state_since = at
      where s.task_id = c.task_id and s.step = c.step and s.index = c.index and s.state = 'pending';
      if held.task_id is null then
        busy := busy || c.task_id;
      end if;
      continue;
    end if;
    -- In every case: a step that a crash leaves to a person waits without a row here, and would go on by itself with one.
    delete from pawl.step_key_waiters w where w.scope = c.scope and w.key = c.key
      and w.task_id = c.task_id and w.step = c.step and w.index = c.index;
  end loop;
  perform pawl.look_again(b) from (select distinct b from unnest(busy) b) d;
  return ended;
end $$;
