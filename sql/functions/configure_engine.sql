-- does: sets how the engine runs and how long it keeps records: {staged, direct, announce, max_steps_per_transaction,
--   dead_letter_retention, absorbed_retention, audit_retention, operation_retention}; null gives the default back. Every
--   instance follows at once: the settings are read by the transactions that use them.
-- called by: operators, pawl config apply.
-- locks: the settings' row.
-- raises: PW023, PW024 for an unknown field or a bad value.
create or replace function pawl.configure_engine(settings jsonb, actor text, reason text) returns jsonb language plpgsql set jit = off as $$
declare
  field record;
  kept pawl.engine_settings;
  value text;
begin
  perform pawl.begin_operation(actor, reason);
  if jsonb_typeof(settings) is distinct from 'object' then
    perform pawl.refuse_setting('the settings of the engine', 'an object such as {"staged": true}');
  end if;
  for field in select * from jsonb_each(settings) f(name, given) loop
    value := settings->>field.name;
    if field.name in ('staged', 'direct', 'announce') then
      if jsonb_typeof(field.given) not in ('boolean', 'null') then
        perform pawl.refuse_setting(field.name, 'true or false');
      end if;
      execute format('update pawl.engine_settings set %I = coalesce($1, %L::boolean)', field.name, field.name <> 'staged')
        using value::boolean;
    elsif field.name = 'max_steps_per_transaction' then
      if pawl.positive_setting(field.name, field.given) > 10000 then
        perform pawl.refuse_setting(field.name, 'a whole number from 1 to 10000');
      end if;
      update pawl.engine_settings set max_steps_per_transaction = coalesce(value::int, 2000);
    elsif field.name in ('dead_letter_retention', 'absorbed_retention', 'audit_retention', 'operation_retention') then
      execute format('update pawl.engine_settings set %I = coalesce($1, $2)', field.name) using pawl.parse_duration(value),
        case field.name when 'dead_letter_retention' then interval '30 days' when 'absorbed_retention' then interval '7 days'
          else interval '90 days' end;
    else
      perform pawl.refuse_setting(quote_literal(left(field.name, 80)), 'a setting that exists: staged, direct, announce, '
        'max_steps_per_transaction, dead_letter_retention, absorbed_retention, audit_retention, operation_retention');
    end if;
  end loop;
  select * into kept from pawl.engine_settings;
  return pawl.end_operation('configure_engine', '{}', jsonb_build_object('outcome', 'configured',
    'settings', to_jsonb(kept) - 'one_row'));
end $$;
