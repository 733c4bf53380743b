-- Fills a database with copies of the finished tasks it has, as if they had run: their rows in tasks, steps and audit with
-- the time in their ids moved back. Run with session_replication_role = replica, so that no guard looks at them.
create schema bench;

create function bench.copied(id uuid, copy int) returns uuid language sql immutable as $$
  select (lpad(to_hex(('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint - copy * 1000), 12, '0')
    || substr(replace(id::text, '-', ''), 13))::uuid
$$;

create procedure bench.copy_finished(copies int) language plpgsql as $$
declare
  name text;
  columns text;
begin
  create temp table finished as select task_id from pawl.tasks where finalized_at is not null;
  foreach name in array array['tasks', 'steps', 'audit'] loop
    execute format('create temp table original_%s as select o.* from pawl.%I o join finished using (task_id)', name, name);
  end loop;
  commit;
  for copy in reverse copies..1 loop
    foreach name in array array['tasks', 'steps', 'audit'] loop
      select string_agg(quote_ident(attname), ', ' order by attnum) into columns from pg_attribute
      where attrelid = ('pawl.' || name)::regclass and attnum > 0 and not attisdropped and attgenerated = '' and attname <> 'task_id';
      execute format('insert into pawl.%I (task_id, %s) select bench.copied(task_id, $1), %s from original_%s', name, columns, columns, name)
        using copy;
    end loop;
    commit;
  end loop;
end $$;
