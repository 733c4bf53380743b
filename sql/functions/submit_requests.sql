-- does: takes a client's requests: texts of their bodies and headers. When SQL alone can judge all of them (plain_requests)
--   they are tasks at once. Else, and when creating one raises or meets a task with its id, all are sent to the request queue,
--   where the task-request actor judges them as if the caller had sent them there. Returns the ids of the messages in the order
--   of the requests; null when the tasks are there.
-- called by: clients, outside of their callers' transactions.
-- locks: nothing; of two requests with one request_id the later waits for the earlier's commit.
-- raises: what a body or a header that is no JSON raises, 22004 for a body that is missing: nothing was taken.
create or replace function pawl.submit_requests(bodies text[], request_headers text[]) returns bigint[]
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  fresh pawl.task_request[];
  sent bigint[];
begin
  if bodies is null or array_position(bodies, null) is not null or cardinality(request_headers) > cardinality(bodies) then
    raise exception 'a request''s body is missing' using errcode = '22004', hint = 'Give a body for each header; headers may be null.';
  end if;
  begin
    fresh := pawl.plain_requests(bodies, request_headers);
    if fresh is not null then
      perform set_config('pawl.processor', '', true), set_config('pawl.actor', '', true), set_config('pawl.reason', '', true);
      if cardinality(pawl.create_tasks(fresh)) < cardinality(fresh) then
        raise exception 'a task with this id exists';
      end if;
      return null;
    end if;
  exception when others then
    null; -- the task-request actor tells what is wrong, and with which of them
  end;
  with queued as (
    insert into pgmq.q_orchestration_task_requests (vt, message, headers)
    select clock_timestamp(), u.body::jsonb, u.headers::jsonb
    from unnest(bodies, request_headers) with ordinality u(body, headers, ord) order by u.ord
    returning msg_id)
  select array_agg(q.msg_id order by q.msg_id) into sent from queued q;
  return sent;
end $$;
