-- does: finds the attempts of tasks that are under way without a message: idle for the grace and for their lease, no entity
--   claim (its module's janitor looks after those). Only these queues are looked at.
-- called by: reconcile_attempts.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.lost_attempts(tasks uuid[], queues text[], grace interval) returns setof pawl.steps language plpgsql as $$
declare
  at timestamptz := pawl.now();
  name text;
begin
  foreach name in array queues loop
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
