-- does: finds those of these tasks that have a message at or below an id in the results queue, visible or not: the result
--   of an attempt whose message is gone may be among them. All of these tasks when the queue is too long to be looked through:
--   more than 100,000 messages, or about 200 MB.
-- called by: reconcile_attempts, reconcile_claims.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.results_on_their_way(tasks uuid[], up_to bigint) returns uuid[] language plpgsql stable as $$
declare
  deep boolean;
begin
  select count(*) > 100000 or sum(m.size) > 200 * 1024 * 1024 into deep from (
    select pg_column_size(q.message) as size from pgmq.q_orchestration_step_results q where q.msg_id <= up_to limit 100001) m;
  if deep then
    return tasks;
  end if;
  return array(select distinct x.task_id from pgmq.q_orchestration_step_results q
    cross join lateral (select pawl.as_uuid(case jsonb_typeof(q.message->'task_id') when 'string' then q.message->>'task_id' end)) x(task_id)
    where q.msg_id <= up_to and x.task_id = any (tasks));
end $$;
