-- does: builds and sends the messages of attempts that have just been enqueued, grouped by queue. Input and the results
--   of the needed steps travel along, unless together they are stored in more than 16 kB: then by_reference, and the header
--   bytes tells the queue's reader how much a claim of it is at least, 128 kB: stored text may be a tenth of the text.
-- called by: create_tasks, settle_step_results, start_attempts: in the transaction that enqueues the steps (R1).
-- locks: nothing.
-- raises: undefined_function (42883) when a queue is missing: an infrastructure error, the caller tries again.
create or replace function pawl.send_step_messages(refs pawl.step_ref[]) returns void
language plpgsql as $$
declare
  batch record;
begin
  for batch in
    select b.queue, array_agg(case when b.size > 16384
        then coalesce(b.headers, '{}') || jsonb_build_object('bytes', greatest(b.size, 131072)) else b.headers end order by b.ord) as headers,
      array_agg(case when b.size > 16384 then b.message - '{input,dependencies}'::text[] || '{"by_reference": true}' else b.message end
        order by b.ord) as messages
    from (
      select s.queue, r.ord, coalesce(pg_column_size(t.input), 0) + coalesce(d.size, 0) as size,
        to_jsonb(row(1, s.task_id, s.step, s.index, s.attempt, s.handler, ts.config, t.correlation_id,
          s.task_id || '/' || s.step || case when s.index > 0 then '/' || s.index else '' end
            || case when s.round > 0 then '#' || s.round else '' end,
          -- What is too large by itself is not unpacked only to be left out again.
          case when pg_column_size(t.input) <= 16384 then t.input end, coalesce(d.results, '{}'))::pawl.step_message) as message,
        nullif(coalesce(t.trace, '{}') || case
          when ts.lease_ms <> 30000 or ts.max_deliveries <> 10 or ts.timeout is not null or ts.claim is not null
          then jsonb_strip_nulls(jsonb_build_object('lease_ms', ts.lease_ms, 'max_deliveries', ts.max_deliveries,
            'timeout_ms', extract(epoch from ts.timeout) * 1000, 'claim', case when ts.claim is not null then true end))
          else '{}' end, '{}') as headers
      from unnest(refs) with ordinality r(task_id, step, index, ord)
      -- offset 0: each step by its whole key. Else the planner, who thinks tasks are small, reads all steps for each.
      cross join lateral (select x.* from pawl.steps x
        where x.task_id = r.task_id and x.step = r.step and x.index = r.index offset 0) s
      join pawl.tasks t on t.task_id = s.task_id
      join pawl.template_steps ts on ts.template_id = s.template_id and ts.step = s.step
      left join lateral (
        select jsonb_object_agg(p.step, case when pg_column_size(p.result) <= 16384 then p.result end) as results,
          sum(pg_column_size(p.result)) as size
        from pawl.template_edges e
        cross join lateral (select x.step, x.result from pawl.steps x
          where x.task_id = s.task_id and x.step = e.parent and x.index = 0 offset 0) p
        where ts.needs_count > 0 and e.template_id = s.template_id and e.child = s.step) d on ts.needs_count > 0) b
    group by b.queue
  loop
    execute format('select pawl_queues.%I($1, $2)', 'send_' || batch.queue) using batch.messages, batch.headers;
  end loop;
end $$;
