-- does: what follows the end of a task, in the transaction that ends it: the identity's status and expiry, the reply.
-- called by: settle_step_results, finish_counted_tasks, end_tasks.
-- locks: identity rows of the tasks' keys, in the order of their keys.
-- raises: nothing of its own.
create or replace function pawl.close_tasks(ids uuid[]) returns void
language plpgsql set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $$
declare
  t record;
begin
  for t in
    select x.*, pawl.public_status(x.state) as status,
      coalesce(p.dedup_window, pawl.task_retention(x.template_id)) as keep
    from pawl.tasks x join pawl.templates p on p.template_id = x.template_id
    where x.task_id = any (ids) order by x.scope, x.key, x.task_id
  loop
    if t.key is not null then
      update pawl.task_identities i set status = t.status, expires_at = t.finalized_at + t.keep
      where i.scope = t.scope and i.key = t.key and i.task_id = t.task_id;
    end if;
    perform pawl.send_reply(t.reply_to, jsonb_strip_nulls(jsonb_build_object('request_id', t.task_id, 'task_id', t.task_id,
      'outcome', 'created', 'status', t.status, 'error', t.error))
      || case when t.state in ('complete', 'resolved_manually') then jsonb_build_object('result', t.result) else '{}' end);
  end loop;
end $$;
