-- does: sets what configuration says of a template, all its versions and later ones: {retention: "7d", stuck_after: {state:
--   duration}}; null gives the word back to the template. Returns {template, outcome: configured, settings}.
-- called by: operators, pawl config apply.
-- locks: the settings' row.
-- raises: PW020 for an unknown template, PW023, PW024 for an unknown field or a bad value.
create or replace function pawl.configure_template(namespace text, name text, settings jsonb, actor text, reason text)
returns jsonb language plpgsql set jit = off as $$
#variable_conflict use_variable
declare
  field text;
  kept pawl.template_settings;
begin
  perform pawl.begin_operation(actor, reason);
  if jsonb_typeof(settings) is distinct from 'object' then
    perform pawl.refuse_setting('the settings of a template', 'an object such as {"retention": "7d"}');
  end if;
  if not exists (select from pawl.templates t where t.namespace = namespace and t.name = name) then
    raise exception 'there is no template %/%', left(namespace, 80), left(name, 80) using errcode = 'PW020',
      hint = 'Apply it first; pawl template list shows those that are known.';
  end if;
  for field in select * from jsonb_object_keys(settings) loop
    if field not in ('retention', 'stuck_after') then
      perform pawl.refuse_setting(quote_literal(left(field, 80)), 'a setting that exists: retention, stuck_after');
    end if;
  end loop;
  insert into pawl.template_settings (namespace, name) values (namespace, name) on conflict do nothing;
  update pawl.template_settings s set
    retention = case when settings ? 'retention' then pawl.parse_duration(settings->>'retention') else s.retention end,
    stuck_after = case when settings ? 'stuck_after' then pawl.stuck_thresholds(settings->'stuck_after') else s.stuck_after end
  where s.namespace = namespace and s.name = name
  returning * into kept;
  return pawl.end_operation('configure_template', jsonb_build_object('template', namespace || '/' || name), jsonb_build_object(
    'outcome', 'configured', 'settings', jsonb_build_object('retention', pawl.show_duration(kept.retention),
      'stuck_after', kept.stuck_after)));
end $$;
