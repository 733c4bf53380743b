-- does: hands in the ends of attempts: deletes each step message under its fence (msg_id, read_ct) and, in the same
--   transaction, applies the result when its task is free, else sends it to the results queue. reports: [{msg_id, read_ct,
--   status: complete|failed|rejected, result?, error?}]. Returns [{msg_id, accepted}]; not accepted means late: the message
--   is somebody else's by now, or the attempt has ended or is being ended; or its entity claim was lost, which is
--   written as a failure unless the caller rolls back. No timeout of its step ends an attempt whose report was accepted and committed.
-- called by: workers, report_and_claim_steps.
-- locks: its messages by id, then their entity claims, then as hand_in_step_results.
-- raises: PW010 for an unknown queue, PW016 for a malformed report.
create or replace function pawl.report_steps(queue text, reports jsonb, worker text) returns json
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  fences record;
  taken pawl.delivery[];
  results pawl.step_result[];
  timely bigint[];
  claimed boolean;
begin
  perform pawl.check_step_queue(queue);
  fences := pawl.read_reports(reports);
  if fences.ids is null then
    return '[]';
  end if;
  -- Who reports is no operator, whatever the session says: the guards allow an operator more, and the audit names one.
  perform set_config('pawl.processor', coalesce(worker, ''), true), set_config('pawl.actor', '', true), set_config('pawl.reason', '', true);
  execute format('select pawl_queues.%I($1, $2)', 'delete_' || queue) into taken using fences.ids, fences.counts;
  if taken is null then
    return (select json_agg(json_build_object('msg_id', i, 'accepted', false)) from unnest(fences.ids) i);
  end if;
  with ended as materialized (
    select g.msg_id, g.read_ct, g.headers, (g.message->>'task_id')::uuid as task_id, g.message->>'step' as step,
      coalesce((g.message->>'index')::int, 0) as index, (g.message->>'attempt')::int as attempt
    from unnest(taken) g)
  select array_agg((e.task_id, e.step, e.index, e.attempt, r->>'status', r->'result', r->'error', report_steps.worker,
      e.msg_id)::pawl.step_result order by e.msg_id), bool_or(e.headers ? 'claim')
  into results, claimed
  from ended e
  join jsonb_array_elements(reports) r on (r->>'msg_id')::bigint = e.msg_id and (r->>'read_ct')::int = e.read_ct;
  if claimed then
    results := pawl.end_reported_claims(results);
  end if;
  timely := pawl.hand_in_step_results(results);
  if claimed then
    timely := array(select r.msg_id from unnest(results) r where r.msg_id = any (timely)
      and r.error->>'type' is distinct from 'claim_lost');
  end if;
  return (select json_agg(json_build_object('msg_id', u.id, 'accepted', g.msg_id is not null and coalesce(u.id = any (timely), false)))
    from unnest(fences.ids, fences.counts) u(id, read_count)
    left join unnest(taken) g on g.msg_id = u.id and g.read_ct = u.read_count);
end $$;
