-- does: makes a queue known to Pawl: creates it in PGMQ unless it is there, tunes its table, writes its functions and
--   its announcing trigger; again when one of them is gone (explain_queue). Returns whether it was new to Pawl, or not whole.
--   PGMQ's index on vt serves no statement of ours or of PGMQ's read, and without it a read is a HOT update.
--   The ids of a table that replaces another begin with the time in milliseconds: a worker that holds a message of the old
--   table knows it by id and count alone, and would end an attempt of the new one.
-- called by: register_template, adhoc_template, change_queue, sql/triggers/queues.sql.
-- locks: an advisory lock per queue name; the queue's table while its trigger is made.
-- raises: PW010 for a bad name.
create or replace function pawl.install_queue(queue text, engine boolean default false) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
declare
  known boolean := exists (select from pawl.queues q where q.queue = install_queue.queue);
  whole boolean := known and pawl.explain_queue(queue) is null;
  ids regclass;
  announcer text;
begin
  if queue is null or queue !~ '^[a-z][a-z0-9_]{0,39}$' or (not engine and starts_with(queue, 'orchestration_')) then
    raise exception 'bad queue name %', quote_nullable(left(queue, 80)) using errcode = 'PW010',
      hint = 'A queue name has 1 to 40 of a-z, 0-9 and _, begins with a letter, and not with orchestration_.';
  end if;
  if whole then
    return false;
  end if;
  perform pg_advisory_xact_lock(hashtext('pawl.install_queue'), hashtext(queue));
  whole := known and pawl.explain_queue(queue) is null; -- somebody may have been quicker
  if pawl.queue_table(queue) is null
    or not exists (select from pgmq.meta m where m.queue_name = queue) then
    perform pgmq.create(queue);
  end if;
  if known and not exists (select from pg_trigger g
    where g.tgrelid = pawl.queue_table(queue) and g.tgname = 'pawl_announce') then
    ids := pg_get_serial_sequence(format('pgmq.%I', 'q_' || queue), 'msg_id');
    perform setval(ids, greatest(pg_sequence_last_value(ids), (extract(epoch from clock_timestamp()) * 1000)::bigint));
  end if;
  execute format('drop index if exists pgmq.%I', 'q_' || queue || '_vt_idx');
  execute format('alter table pgmq.%I set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.0, '
    'autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0)', 'q_' || queue);
  execute format('create sequence if not exists pawl_queues.%I minvalue 0 cache 1', 'announced_' || queue);
  announcer := pawl.missing_announcer(queue);
  if announcer is not null then
    execute announcer;
  end if;
  perform pawl.write_queue_functions(queue);
  -- A table that somebody else made has not the rights that ours have from the start (install_roles).
  if (select has_schema_privilege(r.oid, 'pawl', 'usage') from pg_roles r where r.rolname = 'pawl_orchestrator') then
    execute format('grant select, insert, update, delete on pgmq.%I to pawl_orchestrator', 'q_' || queue);
    execute format('grant usage, select, update on sequence %s to pawl_orchestrator',
      pg_get_serial_sequence(format('pgmq.%I', 'q_' || queue), 'msg_id'));
    execute format('grant select on pgmq.%I to pawl_operator', 'q_' || queue);
  end if;
  insert into pawl.queues (queue, engine) values (queue, engine) on conflict do nothing;
  return not whole;
end $$;
