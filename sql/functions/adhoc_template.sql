-- does: finds or makes the one-step template behind requests that name a handler and no template. Returns its id.
-- called by: the task-request actor.
-- locks: as register_template, only the first time.
-- raises: PW010 for a bad queue name.
create or replace function pawl.adhoc_template(namespace text, handler text, queue text) returns int
language plpgsql set jit = off as $$
declare
  id int;
  place text := coalesce(queue, namespace || '_queue');
begin
  select t.template_id into id from pawl.templates t
  where t.namespace = adhoc_template.namespace and t.name = handler and t.version = 'adhoc:' || place;
  if id is null then
    id := (pawl.register_template(jsonb_build_object('namespace', namespace, 'name', handler, 'version', 'adhoc:' || place,
      'steps', jsonb_build_array(jsonb_build_object('no', 0, 'name', 'run', 'handler', handler, 'queue', place,
        'needs', '[]'::jsonb))), true)->>'template_id')::int;
  end if;
  return id;
end $$;
