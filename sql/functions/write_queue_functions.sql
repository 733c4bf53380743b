-- does: writes the four functions of one queue into schema pawl_queues: read_, send_, delete_, touch_. Static statements
--   keep their plans; PGMQ's own functions build their SQL at each call and are planned each time (0.6 ms against 0.1).
--   They keep PGMQ's meaning of vt, read_ct and last_read_at (there from 1.10 on). Under a fence one waits for a message,
--   in the order of ids: a read whose snapshot is older locks it for a moment and does not take it; to skip it then would
--   call its holder late while nobody has it. A reader waits for nobody. "= any" in an index takes ids in their order, and
--   "is true" keeps the fences a filter: as a join they would be looked up a second time, or in any order.
--   A transaction that is held open keeps dead messages in the queue, and a read passes all of them. A session whose read
--   was slow (20 ms) begins later ones a thousand ids before the first message it found. What becomes visible below is found
--   when it looks from the first id again: after 19 times as long as that took, 30 s at most, once nothing else is there; 30 s
--   later in any case.
-- called by: install_queue, sql/triggers/queues.sql.
-- locks: nothing.
-- raises: 42P01 when the queue's table is gone: install_queue makes it.
create or replace function pawl.write_queue_functions(queue text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $f$
declare
  seen text := case when exists (select from information_schema.columns c where c.table_schema = 'pgmq'
    and c.table_name = 'q_' || queue and c.column_name = 'last_read_at') then ', last_read_at = clock_timestamp()' else '' end;
  mark text := 'pawl.floor_' || queue;
  ids text := pg_get_serial_sequence('pgmq.q_' || queue, 'msg_id');
  -- Whoever may send may write anything into headers; those of the engine's own queues say nothing about reading.
  header text := case when not starts_with(queue, 'orchestration_') then $s$case when q.headers->>'%1$s' ~ '^[0-9]{1,9}$'
    then (q.headers->>'%1$s')::bigint else %2$s end$s$ else '%2$s' end;
  size text := 'pg_column_size(q.message) + ' || format(header, 'bytes', '0');
  lease text := format(header, 'lease_ms', 'lease_ms');
  plans text := 'set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off set enable_hashjoin = off '
    'set enable_mergejoin = off set enable_bitmapscan = off';
  old regprocedure;
begin
  -- A drop takes two locks until the end of the transaction, in which an upgrade writes the functions of all queues.
  for old in select p.oid::regprocedure from pg_proc p where p.pronamespace = 'pawl_queues'::regnamespace
    and p.proname in ('read_' || queue, 'delete_' || queue) and (p.prorettype <> 'pawl.delivery[]'::regtype or p.proretset)
  loop
    execute format('drop function %s', old);
  end loop;
  execute format($t$
    create or replace function pawl_queues.%1$I(quantity int, lease_ms bigint, max_bytes bigint) returns pawl.delivery[]
    language plpgsql %4$s as $$
    declare
      began timestamptz := clock_timestamp();
      mark jsonb := nullif(current_setting(%5$L, true), '');
      until timestamptz := to_timestamp((mark->>'until')::float);
      low bigint := case when began < until + interval '30 s' then (mark->>'floor')::bigint else 0 end;
      ids bigint[];
      size bigint;
      slow interval;
      taken pawl.delivery[];
    begin
      loop
        select array_agg(p.msg_id), sum(p.size) into ids, size from (
          select q.msg_id, %7$s as size from pgmq.%2$I q
          where q.msg_id >= low and q.vt <= clock_timestamp()
          order by q.msg_id limit quantity for update skip locked) p;
        slow := clock_timestamp() - began;
        exit when low = 0 or ids is not null or began < until;
        low := 0;
      end loop;
      if size > max_bytes then
        ids := array(select s.msg_id from (
          select z.msg_id, z.size, sum(z.size) over (order by z.msg_id) as running
          from (select q.msg_id, %7$s as size from pgmq.%2$I q where q.msg_id = any (ids)) z) s
        where s.running - s.size < max_bytes);
      end if;
      if slow > interval '20 ms' or low > 0 and slow > interval '3 ms' then
        perform set_config(%5$L, jsonb_build_object('floor', greatest(low, coalesce(ids[1], pg_sequence_last_value(%6$L), 0) - 1000),
          'until', case when low > 0 then (mark->>'until')::float
            else extract(epoch from began + least(20 * slow, interval '30 s')) end)::text, false);
      elsif low = 0 and mark is not null then
        perform set_config(%5$L, '', false);
      end if;
      if ids is null then return null; end if;
      if current_setting('pawl.quiet', true) = '%2$s claims' and (cardinality(ids) >= quantity or size > max_bytes) then
        perform set_config('pawl.quiet', '%2$s left', true);
      end if;
      with u as (update pgmq.%2$I q set read_ct = q.read_ct + 1%3$s,
          vt = clock_timestamp() + %8$s * interval '1 ms'
        where q.msg_id = any (ids) returning q.msg_id, q.read_ct, q.message, q.headers)
      select array_agg((u.msg_id, u.read_ct, u.message, u.headers)::pawl.delivery order by u.msg_id) into taken from u;
      return taken;
    end $$ $t$, 'read_' || queue, 'q_' || queue, seen, plans, mark, ids, size, lease);
  execute format($t$
    create or replace function pawl_queues.%I(messages jsonb[], message_headers jsonb[]) returns void
    language plpgsql as $$
    begin
      insert into pgmq.%I (vt, message, headers)
      select clock_timestamp(), m, h from unnest(messages, message_headers) u(m, h);
    end $$ $t$, 'send_' || queue, 'q_' || queue);
  execute format($t$
    create or replace function pawl_queues.%1$I(ids bigint[], read_counts int[]) returns pawl.delivery[]
    language plpgsql %2$s as $$
    declare taken pawl.delivery[];
    begin
      with gone as (delete from pgmq.%3$I q
        where q.msg_id = any (ids) and ((q.msg_id, q.read_ct) in (select * from unnest(ids, read_counts))) is true
        returning q.msg_id, q.read_ct, q.message, q.headers)
      select array_agg((g.msg_id, g.read_ct, g.message, g.headers)::pawl.delivery order by g.msg_id) into taken from gone g;
      return taken;
    end $$ $t$, 'delete_' || queue, plans, 'q_' || queue);
  execute format($t$
    create or replace function pawl_queues.%1$I(ids bigint[], read_counts int[], in_ms bigint)
    returns table (msg_id bigint, message jsonb)
    language plpgsql %2$s as $$
    #variable_conflict use_column
    begin
      return query update pgmq.%3$I q set vt = clock_timestamp() + in_ms * interval '1 ms'
        where q.msg_id = any (ids) and ((q.msg_id, q.read_ct) in (select * from unnest(ids, read_counts))) is true
      returning q.msg_id, q.message;
    end $$ $t$, 'touch_' || queue, plans, 'q_' || queue);
end $f$;
