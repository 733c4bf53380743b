-- does: turns request messages into tasks. messages: [{msg_id, template_id, traceparent?} or {msg_id, invalid:
--   {error, message}}], checked by the task-request actor. Takes the messages, decides identities, creates tasks, answers.
--   Takes no more than the bound of steps in one transaction allows, at least one; the others stay, for another call. A
--   template over the bound counts once: it is built piece by piece. Returns [{msg_id, outcome:
--   created|attached|rejected|invalid|left, task_id, error}].
-- called by: the task-request actor.
-- locks: its messages by id, identity rows by key, then tasks of the same request_ids by id.
-- raises: 40001 when another transaction made the task of a request_id meanwhile, under another key: the identity that was
--   taken for it here goes back. What raises is tried again message by message.
create or replace function pawl.process_task_requests(messages jsonb, processor text default null) returns jsonb
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off set enable_bitmapscan = off as $$
declare
  taken pawl.task_request[];
  fresh pawl.task_request[];
  outcomes jsonb;
  duplicates jsonb[] := '{}';
  repeated pawl.task_request[] := '{}';
  made uuid[];
  repeats uuid[]; -- request_ids that the batch has several times
  r pawl.task_request;
  decision jsonb;
begin
  perform set_config('pawl.processor', coalesce(processor, ''), true);
  with asked as (select distinct on (1) (m->>'msg_id')::bigint as msg_id, (m->>'template_id')::int as template_id,
      m->'traceparent' as traceparent, m->'invalid' as said
    from jsonb_array_elements(messages) m order by 1),
  wanted as materialized (select a.*, coalesce(a.said, case when t.template_id is null
        then '{"error": "UnknownTemplate", "message": "its template is not applied"}'::jsonb end) as invalid, t.identity_strategy as strategy, case when t.adhoc then 'handler:' || t.namespace || '/' || t.name
        when t.identity_scope = 'namespace' then 'namespace:' || t.namespace else 'template:' || t.namespace || '/' || t.name end as scope,
      row_number() over w = 1 or sum(case when t.step_count > e.max_steps_per_transaction then 1 else coalesce(t.step_count, 0) end)
        over w <= e.max_steps_per_transaction as fits
    from asked a cross join pawl.engine_settings e left join pawl.templates t using (template_id)
    window w as (order by a.msg_id rows unbounded preceding)),
  gone as (delete from pgmq.q_orchestration_task_requests q -- an index scan takes them by id
    where q.msg_id = any (array(select w.msg_id from wanted w where w.fits))
    returning q.msg_id, q.read_ct, q.message, q.headers),
  judged as (select g.msg_id, g.read_ct, g.message, w.template_id, w.strategy, w.scope, case when w.traceparent is null then g.headers
        else coalesce(g.headers, '{}') || jsonb_build_object('traceparent', w.traceparent) end as headers,
      coalesce(w.invalid, pawl.key_problem(w.strategy, g.message->'key')) as invalid
    from gone g join wanted w using (msg_id))
  select array_agg((g.msg_id, g.read_ct, coalesce((case when g.invalid is null then g.message->>'request_id' end)::uuid,
      pawl.new_task_id()), g.template_id, case when g.invalid is null then g.message
      else jsonb_build_object('invalid', g.invalid, 'message', g.message) end, g.headers, g.scope,
      case g.strategy when 'always_unique' then null
        when 'strict' then encode(pawl.fingerprint(g.message->'input'), 'hex') else g.message->>'key' end, null
    )::pawl.task_request order by g.msg_id),
    coalesce((select jsonb_agg(jsonb_build_object('msg_id', w.msg_id, 'outcome', 'left')) from wanted w where not w.fits), '[]')
  into taken, outcomes from judged g;

  repeats := array(select u.task_id from unnest(taken) u group by u.task_id having count(*) > 1);
  select coalesce(array_agg((u.msg_id, u.read_count, u.task_id, u.template_id, u.message, u.headers, null, null, null
    )::pawl.task_request), '{}') into fresh
  from unnest(taken) u where u.key is null and not u.message ? 'invalid';
  for r in select u.* from unnest(taken) u where u.message ? 'invalid' loop
    outcomes := outcomes || pawl.refuse_request(r);
  end loop;
  for r in select u.* from unnest(taken) u where u.key is not null and not u.message ? 'invalid'
    order by u.scope, u.key, u.msg_id
  loop
    if exists (select from pawl.tasks t where t.task_id = r.task_id)
      or (r.task_id = any (repeats) and exists (select from unnest(fresh) f where f.task_id = r.task_id))
    then
      fresh := fresh || r; -- a repeat, whose key means nothing
      continue;
    end if;
    decision := pawl.decide_identity(r, pawl.fingerprint(r.message->'input'), r.message->>'on_duplicate');
    if decision->>'decision' = 'create' then
      r.epoch := (decision->>'epoch')::int;
      fresh := fresh || r;
    else
      repeated := repeated || r;
      duplicates := duplicates || decision;
    end if;
  end loop;

  -- In the order of their ids, so that two batches with the same ids do not wait for each other in a circle. Of one request_id the
  -- first in fresh counts: the first without a key, else the one whose identity was decided.
  made := pawl.create_tasks(case when repeats = '{}' then array(select u::pawl.task_request from unnest(fresh) u order by u.task_id)
    else array(select x::pawl.task_request from (select distinct on (u.task_id) u.* from unnest(fresh) u
      order by u.task_id, u.epoch, u.key nulls first, u.msg_id) x order by x.task_id) end);
  for n in 1 .. cardinality(repeated) loop -- the holder may have been created just now
    outcomes := outcomes || pawl.answer_duplicate(repeated[n], (duplicates[n]->>'holder')::uuid, duplicates[n]->'error');
  end loop;
  outcomes := outcomes || coalesce((select jsonb_agg(jsonb_build_object('msg_id', f.msg_id, 'outcome', 'created', 'task_id', f.task_id))
    from unnest(fresh) f where f.task_id = any (made)), '[]');
  if cardinality(made) < cardinality(fresh) then
    if exists (select from unnest(fresh) f where f.epoch is not null and not f.task_id = any (made)) then
      raise exception 'the task of a request_id was made meanwhile, under another key' using errcode = 'serialization_failure',
        hint = 'The request is a repeat: process it again.';
    end if;
    outcomes := pawl.answer_repeats(fresh, made, outcomes);
  end if;
  return outcomes;
end $$;
