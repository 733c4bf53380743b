-- does: lets entity claims touch one of the user's tables. settings: {table, key, status, version, states, module,
--   claim_limit?}: the columns that hold key, status and version (a whole number), the states there are, the module whose
--   janitor answers for it, and how old a claim may get (5 minutes). Returns {entity, outcome: registered|changed|unchanged}.
-- called by: operators.
-- locks: the advisory lock of check_template_claims; the entity's row, when it changes. Claims that begin hold it until their commit: what is decided is read after them.
-- raises: PW023, PW030 for settings that do not fit the table, PW031 for a change while claims are open.
create or replace function pawl.register_entity(entity text, settings jsonb, actor text, reason text) returns jsonb
language plpgsql set jit = off as $$
declare
  fresh pawl.entities;
  known pawl.entities;
begin
  perform pawl.begin_operation(actor, reason);
  perform pg_advisory_xact_lock(hashtext('pawl.check_template_claims')); -- a template that is being registered may use its states
  fresh := pawl.check_entity(entity, settings);
  select * into known from pawl.entities e where e.entity = register_entity.entity;
  if to_jsonb(known) - 'registered_at' <> to_jsonb(fresh) - 'registered_at' then
    select * into known from pawl.entities e where e.entity = register_entity.entity for update;
  end if;
  fresh.registered_at := coalesce(known.registered_at, fresh.registered_at);
  if known = fresh then
    return pawl.end_operation('register_entity', jsonb_build_object('entity', entity), '{"outcome": "unchanged"}');
  elsif exists (select from pawl.entity_claims c where c.entity = register_entity.entity) then
    raise exception 'entity % has open claims', entity using errcode = 'PW031', hint = 'Wait until they have ended.';
  end if;
  -- In its place: a claim that meets the lock finds what it became, not that it is gone.
  update pawl.entities e set table_name = fresh.table_name, key_column = fresh.key_column, status_column = fresh.status_column,
    version_column = fresh.version_column, states = fresh.states, module = fresh.module, claim_limit = fresh.claim_limit
  where e.entity = register_entity.entity;
  if not found then
    insert into pawl.entities select fresh.*;
  end if;
  return pawl.end_operation('register_entity', jsonb_build_object('entity', entity),
    jsonb_build_object('outcome', case when known.entity is null then 'registered' else 'changed' end));
end $$;
