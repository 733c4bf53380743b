-- does: puts messages of a version newer than 1 back for a minute, for an instance that knows them, and takes the read from
--   their count: nobody worked them. Returns the others.
-- called by: apply_step_results, process_step_enqueues, finalize_tasks.
-- locks: all these messages by id: one that somebody holds for a moment is not taken for an old one.
-- raises: nothing.
create or replace function pawl.put_back_newer(queue text, ids bigint[]) returns bigint[] language plpgsql as $$
declare
  newer bigint[];
begin
  execute format($q$
    with own as materialized (select l.msg_id, l.message from pgmq.%I l where l.msg_id = any ($1) order by l.msg_id for update)
    select array_agg(o.msg_id) from own o where jsonb_typeof(o.message) = 'object'
      and case jsonb_typeof(o.message->'v') when 'number' then (o.message->>'v')::numeric > 1 else false end $q$, 'q_' || queue)
  using ids into newer;
  if newer is null then
    return ids;
  end if;
  perform pawl.put_back(queue, newer, interval '1 minute');
  return array(select i from unnest(ids) i where not i = any (newer));
end $$;
