-- does: opens an operator's command: who does it and why goes into every audit row of the transaction, until
--   end_operation. A command that raises leaves nothing behind, the setting included.
-- called by: every operator function, first.
-- locks: nothing.
-- raises: PW023 when actor or reason is missing.
create or replace function pawl.begin_operation(actor text, reason text) returns void language plpgsql as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform pawl.refuse_command('an operator''s command needs read committed',
      'Within another isolation level it would decide on what was, not on what is.');
  end if;
  if coalesce(btrim(actor), '') = '' or coalesce(btrim(reason), '') = '' or octet_length(actor) > 200
    or octet_length(reason) > 2000 then
    raise exception 'an operator''s command needs an actor and a reason' using errcode = 'PW023',
      hint = 'Say who acts (at most 200 bytes) and why (at most 2,000): both are kept in the audit.';
  end if;
  perform set_config('pawl.actor', actor, true), set_config('pawl.reason', reason, true);
end $$;
