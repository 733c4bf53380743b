-- does: picks and locks up to quantity open dead letters, oldest first. filter: {queue, ids: […], reason: a LIKE pattern,
--   task_id, before, after}; {} picks any.
-- called by: redrive_dead_letters, drop_dead_letters.
-- locks: their rows, skip locked.
-- raises: PW024 for an unknown field, a bad value, or a quantity outside 1 to 10,000.
create or replace function pawl.pick_dead_letters(filter jsonb, quantity int) returns bigint[] language plpgsql as $$
declare
  unknown text;
  wanted bigint[];
  task uuid;
  before_at timestamptz;
  after_at timestamptz;
begin
  if jsonb_typeof(filter) is distinct from 'object' then
    perform pawl.refuse_setting('the filter', 'an object such as {"queue": "shop_queue", "reason": "%timeout%"}');
  elsif quantity is null or quantity not between 1 and 10000 then
    perform pawl.refuse_setting('quantity', 'a number from 1 to 10000; repeat the command for more');
  end if;
  select f into unknown from jsonb_object_keys(filter) f where f not in ('queue', 'ids', 'reason', 'task_id', 'before', 'after');
  if found then
    perform pawl.refuse_setting(quote_literal(left(unknown, 80)), 'a filter that exists: queue, ids, reason, task_id, before, after');
  elsif filter <> jsonb_strip_nulls(filter) then
    perform pawl.refuse_setting('a field that is null', 'a value, or leave the field out');
  elsif filter ? 'ids' and jsonb_typeof(filter->'ids') <> 'array' then
    perform pawl.refuse_setting('ids', 'an array of numbers of dead letters');
  end if;
  wanted := case when filter ? 'ids' then array(select i::bigint from jsonb_array_elements_text(filter->'ids') i) end;
  task := filter->>'task_id';
  before_at := filter->>'before';
  after_at := filter->>'after';
  return array(
    select d.dead_letter_id from pawl.dead_letters d
    where d.status = 'open'
      and (filter->>'queue' is null or d.queue = filter->>'queue')
      and (wanted is null or d.dead_letter_id = any (wanted))
      and (filter->>'reason' is null or d.reason like filter->>'reason')
      and (task is null or d.task_id = task)
      and (before_at is null or d.dead_at < before_at)
      and (after_at is null or d.dead_at >= after_at)
    order by d.dead_letter_id limit quantity for update skip locked);
exception
  when data_exception then
    perform pawl.refuse_setting('the filter', 'ids as numbers, reason as a LIKE pattern, task_id as a UUID, before and after as timestamps');
end $$;
