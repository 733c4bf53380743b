-- does: sets how the engine runs, for all orchestrators: {staged, direct, announce, max_steps_per_transaction,
--   dead_letter_retention: "30d", absorbed_retention, audit_retention, operation_retention}; what is not named stays.
--   Returns {outcome: configured|unchanged, settings}.
-- called by: operators, pawl config apply.
-- locks: the settings' row.
-- raises: PW023, PW024 for an unknown field or a bad value.
create or replace function pawl.configure_engine(settings jsonb, actor text, reason text) returns jsonb language plpgsql as $$
#variable_conflict use_variable
declare
  was pawl.engine_settings;
  is_now pawl.engine_settings;
  field record;
begin
  perform pawl.begin_operation(actor, reason);
  if jsonb_typeof(settings) is distinct from 'object' then
    perform pawl.refuse_setting('the settings of the engine', 'an object such as {"staged": true}');
  end if;
  select * into was from pawl.engine_settings for update;
  is_now := was;
  for field in select * from jsonb_each(settings) f(name, given) loop
    if field.name in ('staged', 'direct', 'announce') and jsonb_typeof(field.given) <> 'boolean' then
      perform pawl.refuse_setting(field.name, 'true or false');
    elsif field.name like '%\_retention' and jsonb_typeof(field.given) <> 'string' then
      perform pawl.refuse_setting(field.name, 'a duration such as "30d"');
    end if;
    case field.name
      when 'staged' then is_now.staged := field.given::boolean;
      when 'direct' then is_now.direct := field.given::boolean;
      when 'announce' then is_now.announce := field.given::boolean;
      when 'max_steps_per_transaction' then is_now.max_steps_per_transaction := pawl.positive_setting(field.name, field.given);
        if is_now.max_steps_per_transaction is null or is_now.max_steps_per_transaction > 10000 then
          perform pawl.refuse_setting(field.name, 'a whole number from 1 to 10000');
        end if;
      when 'dead_letter_retention' then is_now.dead_letter_retention := pawl.parse_duration(settings->>field.name);
      when 'absorbed_retention' then is_now.absorbed_retention := pawl.parse_duration(settings->>field.name);
      when 'audit_retention' then is_now.audit_retention := pawl.parse_duration(settings->>field.name);
      when 'operation_retention' then is_now.operation_retention := pawl.parse_duration(settings->>field.name);
      else perform pawl.refuse_setting(quote_literal(left(field.name, 80)), 'a setting that exists: staged, direct, announce, '
        'max_steps_per_transaction, dead_letter_retention, absorbed_retention, audit_retention, operation_retention');
    end case;
  end loop;
  if is_now is distinct from was then
    update pawl.engine_settings s set staged = is_now.staged, direct = is_now.direct, announce = is_now.announce,
      max_steps_per_transaction = is_now.max_steps_per_transaction, dead_letter_retention = is_now.dead_letter_retention,
      absorbed_retention = is_now.absorbed_retention, audit_retention = is_now.audit_retention,
      operation_retention = is_now.operation_retention;
  end if;
  return pawl.end_operation('configure_engine', '{}', jsonb_build_object(
    'outcome', case when is_now is distinct from was then 'configured' else 'unchanged' end,
    'settings', to_jsonb(is_now) - 'one_row'));
end $$;
