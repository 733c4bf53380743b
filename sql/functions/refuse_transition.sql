-- does: raises PW001 for a transition that the table of legal transitions does not hold.
-- called by: the guards of tasks and steps. Stable: a volatile function keeps their select a level of its own below the insert.
-- locks: nothing.
-- raises: PW001, always.
create or replace function pawl.refuse_transition(entity text, id text, from_state text, to_state text, was int, now_is int)
returns text language plpgsql stable as $$
begin
  raise exception '% % may not go from % (revision %) to % (revision %)',
    entity, id, coalesce(nullif(from_state, ''), 'nothing'), was, to_state, now_is
    using errcode = 'PW001', hint = 'States move only through the functions of schema pawl.';
end $$;
