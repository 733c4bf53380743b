-- The database around the engine. Advice is about the server and others on it, and fails nothing.

-- H1 advice: no transaction is idle for long: it holds back vacuum and everybody who needs its locks.
select 'process ' || a.pid, format('%s has been idle in a transaction since %s', coalesce(nullif(a.application_name, ''), 'a client'), a.state_change)
from pg_stat_activity a
where a.datname = current_database() and a.state like 'idle in transaction%' and a.state_change < clock_timestamp() - interval '5 minutes';

-- H2 advice: nothing keeps dead rows from being removed for long.
select 'process ' || a.pid, format('has held its snapshot since %s', a.xact_start)
from pg_stat_activity a
where a.datname = current_database() and (a.backend_xmin is not null or a.backend_xid is not null)
  and a.pid <> pg_backend_pid() and a.xact_start < clock_timestamp() - interval '10 minutes'
union all
select 'prepared transaction ' || p.gid, format('since %s', p.prepared) from pg_prepared_xacts p
where p.database = current_database() and p.prepared < clock_timestamp() - interval '10 minutes';

-- H3 advice: the queue of notifications is as good as empty; a listener inside an open transaction fills it.
select 'pg_notification_queue_usage', format('%s %%', round((100 * u)::numeric, 1)) from pg_notification_queue_usage() u where u > 0.01;

-- H4 advice: no deadlocks.
--   Differs: Pawl's own tests ask for 0; the counter is the whole database's, with what else runs in it.
select d.datname, format('%s deadlocks since %s', d.deadlocks, coalesce(d.stats_reset::text, 'the beginning'))
from pg_stat_database d where d.datname = current_database() and d.deadlocks > 0;

-- H5 always: what counts rows counts in bigint.
--   Differs: templates are few: theirs is an int.
select format('%I.%I', s.schemaname, s.sequencename), format('is of type %s', s.data_type)
from pg_sequences s
where s.schemaname in ('pawl', 'pawl_queues', 'pgmq') and s.data_type <> 'bigint'::regtype and s.sequencename <> 'templates_template_id_seq';

-- H6 always: no sequence nears its end.
select format('%I.%I', s.schemaname, s.sequencename), format('stands at %s of %s', s.last_value, s.max_value)
from pg_sequences s
where s.schemaname in ('pawl', 'pawl_queues', 'pgmq') and s.last_value > s.max_value / 100;

-- H7 always: times carry their time zone.
select format('%I.%I.%I', c.table_schema, c.table_name, c.column_name), c.data_type::text
from information_schema.columns c where c.table_schema in ('pawl', 'pgmq') and c.data_type = 'timestamp without time zone';

-- H8 always: no index and no constraint is invalid.
select i.indexrelid::regclass::text, 'is an invalid index'
from pg_index i join pg_class c on c.oid = i.indexrelid
where c.relnamespace in ('pawl'::regnamespace, 'pgmq'::regnamespace) and not (i.indisvalid and i.indisready)
union all
select k.conrelid::regclass || ' ' || k.conname, 'is not validated' from pg_constraint k
where k.connamespace in ('pawl'::regnamespace, 'pgmq'::regnamespace) and not k.convalidated;

-- H9 always: a function that runs with its owner's rights fixes its search_path.
select p.oid::regprocedure::text, 'is security definer with the caller''s search_path'
from pg_proc p
where p.pronamespace in ('pawl'::regnamespace, 'pawl_queues'::regnamespace) and p.prosecdef
  and not exists (select from unnest(p.proconfig) c where c like 'search_path=%');

-- H10 always: no two queue names share a table.
select lower(m.queue_name::text), format('%s queues have this name but for capitals', count(*)) from pgmq.meta m group by 1, lower(m.queue_name::text) having count(*) > 1;

-- H11 always: no queue that Pawl uses loses its messages in a crash.
select q.queue, 'its table is unlogged'
from pawl.queues q join pg_class c on c.relnamespace = 'pgmq'::regnamespace and c.relname = 'q_' || q.queue where c.relpersistence <> 'p';

-- H12 always: a queue that Pawl knows is whole: PGMQ's row and table, its functions, its announcement.
select q.queue, e.says from pawl.queues q cross join lateral pawl.explain_queue(q.queue) e(says) where e.says is not null;

-- H13 always: foreign keys are indexed.
--   Differs: the schema has none, on purpose; one that somebody adds must be.
select k.conrelid::regclass || ' ' || k.conname, 'has no index that begins with its columns'
from pg_constraint k
where k.contype = 'f' and k.connamespace = 'pawl'::regnamespace
  and not exists (select from pg_index i where i.indrelid = k.conrelid and (i.indkey::int2[])[0:cardinality(k.conkey) - 1] @> k.conkey);

-- H14 always: the guards of tasks and steps are awake.
select v.name::text, format('trigger %s is missing or disabled', v.guard)
from (values ('pawl.tasks', 'guard_insert'), ('pawl.tasks', 'guard_update'), ('pawl.steps', 'guard_insert'), ('pawl.steps', 'guard_update')) v(name, guard)
where not exists (select from pg_trigger g where g.tgrelid = v.name::regclass and g.tgname = v.guard and g.tgenabled in ('O', 'A'));

-- H15 advice: an orchestrator runs while messages wait for one.
select m.queue, format('%s messages wait, and no orchestrator had a heartbeat within 30 s (the last one: %s): start one with orchestrator',
  count(*), coalesce((select max(p.heartbeat_at) from pawl.processors p where p.kind = 'orchestrator')::text, 'never'))
from messages m
where m.engine and m.vt <= clock_timestamp() and not exists (select from pawl.processors p
  where p.kind = 'orchestrator' and p.stopped_at is null and p.heartbeat_at > pawl.now() - interval '30 s')
group by m.queue;

-- H16 advice: somebody works on a queue whose messages wait.
--   Differs: seen by the messages themselves, since workers have no rows: for a minute none was taken, and none is held.
select q.queue, e.says from pawl.queues q cross join lateral pawl.explain_unread(q.queue, interval '1 minute') e(says)
where not q.engine and not q.paused and e.says is not null;

-- H17 advice: no dead letter waits for a person.
select d.queue, format('%s open, the latest is %s: %s; pawl dead list shows them', count(*), max(d.dead_letter_id),
  left((array_agg(d.reason order by d.dead_letter_id desc))[1], 200))
from pawl.dead_letters d where d.status = 'open' group by d.queue;
