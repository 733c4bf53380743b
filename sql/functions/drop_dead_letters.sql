-- does: marks dead letters as dropped: nobody will look at them again; retention deletes them. Returns {outcome: dropped,
--   dropped}.
-- called by: operators. filter as pick_dead_letters.
-- locks: the dead letters, skip locked.
-- raises: PW023, PW024.
create or replace function pawl.drop_dead_letters(filter jsonb, quantity int, actor text, reason text) returns jsonb
language plpgsql set jit = off as $$
declare
  ids bigint[];
begin
  perform pawl.begin_operation(actor, reason);
  ids := pawl.pick_dead_letters(filter, quantity);
  update pawl.dead_letters d set status = 'dropped', ended_at = pawl.now(), ended_by = actor where d.dead_letter_id = any (ids);
  return pawl.end_operation('drop_dead_letters', jsonb_build_object('filter', filter),
    jsonb_build_object('outcome', 'dropped', 'dropped', cardinality(ids)));
end $$;
