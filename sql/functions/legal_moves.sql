-- does: the legal transitions of tasks or of steps as one value, {"from>to": "event"}: a transition that passes a state
--   between is "event|state between|event". Those that only an operator may make stand under "!from>to". Guards look
--   transitions up in it at a tenth of what a join costs them, and as text, which is copied where jsonb would be built.
--   Immutable: legal_transitions changes in migrations alone, which write the guards, and with them every plan that holds
--   this value, anew.
-- called by: the guards of tasks and steps.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.legal_moves(entity text) returns jsonb language sql immutable as $$
  select jsonb_object_agg(case when l.operator_only then '!' else '' end || l.from_state || '>' || l.to_state,
    case when l.via_state is null then l.event else v.event || '|' || l.via_state || '|' || l.event end)
  from pawl.legal_transitions l
  left join pawl.legal_transitions v on v.entity = l.entity and v.from_state = l.from_state and v.to_state = l.via_state
  where l.entity = $1
$$;
