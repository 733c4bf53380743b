-- does: takes messages that ask for another look at a task ({task_id, reason}) or at a gated queue ({queue, reason}): builds
--   large tasks piece by piece, starts what is ready, opens gates. Pieces over the bound of steps in one transaction are
--   asked for again. Returns how many were taken.
-- called by: the step-enqueuer actor.
-- locks: its messages by id, then tasks by id, then their steps.
-- raises: 55P03 when a task stays locked: the messages come back.
create or replace function pawl.process_step_enqueues(ids bigint[], processor text default null) returns int
language plpgsql set jit = off as $$
declare
  taken int;
  tasks uuid[];
  later uuid[] := '{}';
  fits boolean;
  queues text[];
  one uuid;
begin
  perform set_config('pawl.processor', coalesce(processor, ''), true);
  ids := pawl.put_back_newer('orchestration_step_enqueues', ids);
  with gone as (
    delete from pgmq.q_orchestration_step_enqueues q where q.msg_id = any (array(
      select l.msg_id from pgmq.q_orchestration_step_enqueues l where l.msg_id = any (ids) order by l.msg_id for update))
    returning q.msg_id, q.read_ct, q.message, q.headers),
  dead as (
    insert into pawl.dead_letters (queue, msg_id, read_count, message, headers, reason)
    select 'orchestration_step_enqueues', g.msg_id, g.read_ct, g.message, g.headers, 'names neither a task_id nor a queue'
    from gone g where pawl.as_uuid(g.message->>'task_id') is null and jsonb_typeof(g.message->'queue') is distinct from 'string')
  select count(*), array_agg(distinct pawl.as_uuid(g.message->>'task_id')) filter (where pawl.as_uuid(g.message->>'task_id') is not null),
    array_agg(distinct g.message->>'queue') filter (where jsonb_typeof(g.message->'queue') = 'string')
  into taken, tasks, queues from gone g;
  if tasks is not null then
    perform from pawl.tasks t where t.task_id = any (tasks) order by t.task_id for no key update;
    for one, fits in
      select b.task_id, row_number() over w = 1 or sum(least(b.missing, b.bound)) over w <= b.bound
      from (select t.task_id, e.max_steps_per_transaction as bound,
          p.step_count - (select count(*) from pawl.steps s where s.task_id = t.task_id) as missing
        from pawl.tasks t join pawl.templates p using (template_id) cross join pawl.engine_settings e
        where t.task_id = any (tasks) and t.state = 'initializing') b
      window w as (order by b.task_id rows unbounded preceding) order by b.task_id
    loop
      if fits then
        perform pawl.build_steps(one);
      else
        later := later || one;
      end if;
    end loop;
    perform pawl.send_step_enqueue(later, 'build');
    perform pawl.settle_tasks(tasks || pawl.free_task_keys(tasks));
  end if;
  if queues is not null then
    perform pawl.release_held(1000, processor);
  end if;
  return taken;
end $$;
