-- does: finds the attempts of tasks that are under way without a message: idle for the grace and for their lease, no entity
--   claim (its module's janitor looks after those). Queues with more than 100,000 messages are looked at when they are
--   shorter, those whose table is gone when it is there again: the next attempts would find it gone as well.
-- called by: reconcile_attempts.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.lost_attempts(tasks uuid[], grace interval) returns setof pawl.steps language plpgsql as $$
declare
  at timestamptz := pawl.now();
  name text;
  depth int;
begin
  for name in
    select distinct s.queue from pawl.steps s where s.task_id = any (tasks) and s.state in ('enqueued', 'in_progress') order by 1
  loop
    continue when to_regclass(format('pgmq.%I', 'q_' || name)) is null;
    execute format('select count(*) from (select from pgmq.%I limit 100001) m', 'q_' || name) into depth;
    continue when depth > 100000;
    return query execute format($q$
      select s.* from pawl.steps s
      join pawl.template_steps ts on ts.template_id = s.template_id and ts.step = s.step
      where s.task_id = any ($1) and s.queue = $2 and s.state in ('enqueued', 'in_progress')
        and s.state_since < $3 - greatest($4, ts.lease_ms * interval '1 ms')
        and not exists (select from pawl.entity_claims c where c.task_id = s.task_id and c.step = s.step and c.index = s.index)
        and not exists (select from pgmq.%I m where m.message->>'task_id' = s.task_id::text and m.message->>'step' = s.step
          and coalesce(m.message->>'index', '0') = s.index::text and m.message->>'attempt' = s.attempt::text) $q$,
      'q_' || name) using tasks, name, at, grace;
  end loop;
end $$;
