-- does: picks those of these queues that one call of the reconciler looks through: about 200,000 messages in all, and one
--   queue at least; in each pass in another order, so that the turn of every queue comes. A kilobyte, compressed, counts as a
--   message: one looks into every body. Queues with more than 100,000 of either are looked at when they are shorter, those whose
--   table is gone when it is there again.
-- called by: reconcile_attempts, reconcile_queues.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.queues_in_turn(queues text[]) returns text[] language plpgsql as $$
declare
  name text;
  depth bigint; -- messages, or their kilobytes
  work bigint := 0;
  turn text[] := '{}';
begin
  for name in select q from unnest(queues) q cross join pawl.reconciler r order by md5(r.pass || q) loop
    exit when work >= 200000;
    continue when pawl.queue_table(name) is null;
    execute format('select greatest(count(*), sum(m.size) / 1024) from (select pg_column_size(q.message) as size from pgmq.%I q limit 100001) m',
      'q_' || name) into depth;
    if depth > 100000 then
      work := work + 10000; -- only counted
    else
      work := work + greatest(depth, 200);
      turn := turn || name;
    end if;
  end loop;
  return turn;
end $$;
