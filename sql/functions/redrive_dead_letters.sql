-- does: sends dead letters to their queues again, evenly over a span of time (null: at once). One that belonged to an
--   attempt that has ended meanwhile would only be stale: it is absorbed. One whose queue is gone stays. Returns
--   {outcome: redriven, redriven, absorbed, left}.
-- called by: operators. filter as pick_dead_letters.
-- locks: the dead letters, skip locked.
-- raises: PW023, PW024.
create or replace function pawl.redrive_dead_letters(filter jsonb, quantity int, spread interval, actor text, reason text)
returns jsonb language plpgsql set jit = off as $$
declare
  ids bigint[];
  stale bigint[];
  batch record;
  sent bigint[] := '{}';
begin
  perform pawl.begin_operation(actor, reason);
  if spread < interval '0' or spread > interval '7 days' then
    perform pawl.refuse_setting('spread', 'a span of time of at most seven days');
  end if;
  ids := pawl.pick_dead_letters(filter, quantity);
  with ended as (
    select d.* from pawl.dead_letters d
    left join pawl.steps s on s.task_id = pawl.as_uuid(d.message->>'task_id') and s.step = d.message->>'step'
      and s.index::text = coalesce(d.message->>'index', '0')
    where d.dead_letter_id = any (ids) and d.queue not in ('orchestration_task_requests', 'orchestration_task_finalizations',
        'orchestration_step_enqueues')
      and pawl.as_uuid(d.message->>'task_id') is not null and d.message ? 'attempt'
      and (s.task_id is null or s.attempt::text <> d.message->>'attempt' or s.state not in ('enqueued', 'in_progress'))),
  absorbed as (
    insert into pawl.absorbed (queue, msg_id, task_id, step, reason)
    select e.queue, e.msg_id, e.task_id, e.step, 'redriven, but its attempt has ended' from ended e)
  select array_agg(e.dead_letter_id) into stale from ended e;
  for batch in
    select d.queue, array_agg(d.dead_letter_id order by d.dead_letter_id) as ids from pawl.dead_letters d
    where d.dead_letter_id = any (ids) and not d.dead_letter_id = any (coalesce(stale, '{}'))
      and pawl.queue_table(d.queue) is not null group by d.queue order by d.queue
  loop
    execute format($q$
      insert into pgmq.%I (vt, message, headers)
      select clock_timestamp() + coalesce($2, interval '0') * (row_number() over (order by d.dead_letter_id) - 1) / cardinality($1),
        d.message, d.headers
      from pawl.dead_letters d where d.dead_letter_id = any ($1) order by d.dead_letter_id $q$, 'q_' || batch.queue)
      using batch.ids, spread;
    sent := sent || batch.ids;
  end loop;
  update pawl.dead_letters d set status = 'redriven', ended_at = pawl.now(), ended_by = actor
  where d.dead_letter_id = any (sent || stale);
  return pawl.end_operation('redrive_dead_letters', jsonb_build_object('filter', filter), jsonb_build_object(
    'outcome', 'redriven', 'redriven', cardinality(sent), 'absorbed', coalesce(cardinality(stale), 0),
    'left', cardinality(ids) - cardinality(sent) - coalesce(cardinality(stale), 0)));
end $$;
