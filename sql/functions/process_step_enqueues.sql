-- does: takes messages that ask for another look at a task ({task_id, reason}) or at a gated queue ({queue, reason}): builds
--   large tasks piece by piece, starts what is ready, opens gates. Pieces over the bound of steps in one transaction are
--   asked for again; what names a task that somebody holds, or a step of it, is put back for a moment. Returns how many were taken.
-- called by: the step-enqueuer actor.
-- locks: its messages by id, then tasks by id, then their steps, waiting for each a tenth of a second at most.
-- raises: nothing of its own.
create or replace function pawl.process_step_enqueues(ids bigint[], processor text default null) returns int
language plpgsql set jit = off as $$
declare
  tasks uuid[];
  queues text[];
  held uuid[];
  late bigint[];
  taken int;
  waits text := current_setting('lock_timeout');
begin
  perform set_config('pawl.processor', coalesce(processor, ''), true);
  ids := pawl.put_back_newer('orchestration_step_enqueues', ids);
  with own as materialized (
    select q.* from pgmq.q_orchestration_step_enqueues q where q.msg_id = any (ids) order by q.msg_id for update),
  dead as (
    insert into pawl.dead_letters (queue, msg_id, read_count, message, headers, reason)
    select 'orchestration_step_enqueues', o.msg_id, o.read_ct, o.message, o.headers, 'names neither a task_id nor a queue'
    from own o where pawl.as_uuid(o.message->>'task_id') is null and jsonb_typeof(o.message->'queue') is distinct from 'string')
  select array_agg(o.msg_id), array_agg(distinct pawl.as_uuid(o.message->>'task_id')) filter (where pawl.as_uuid(o.message->>'task_id') is not null),
    array_agg(distinct o.message->>'queue') filter (where jsonb_typeof(o.message->'queue') = 'string')
  into ids, tasks, queues from own o;
  if tasks is not null then
    begin
      perform pawl.lock_tasks(tasks); -- inside, and shortly: see apply_step_results
      perform set_config('lock_timeout', '100ms', true);
      perform pawl.settle_asked_tasks(tasks);
      perform set_config('lock_timeout', waits, true); -- the commit waits for all who notify
    exception when lock_not_available then
      held := pawl.held_tasks(tasks);
      late := array(select q.msg_id from pgmq.q_orchestration_step_enqueues q
        where q.msg_id = any (ids) and pawl.as_uuid(q.message->>'task_id') = any (held));
      perform pawl.put_back('orchestration_step_enqueues', late, interval '500 ms');
      ids := array(select i from unnest(ids) i where not i = any (late));
      perform pawl.settle_asked_tasks(array(select u from unnest(tasks) u where not u = any (held)));
    end;
  end if;
  delete from pgmq.q_orchestration_step_enqueues q where q.msg_id = any (ids);
  get diagnostics taken = row_count;
  if queues is not null then
    perform pawl.release_held(1000, processor);
  end if;
  return taken;
end $$;
