-- does: closes an operator's command: writes its row in pawl.operations and takes actor and reason off the transaction.
--   subject: {task_id?, step?, queue?}. Returns the outcome with the subject.
-- called by: every operator function, last.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.end_operation(command text, subject jsonb, outcome jsonb) returns jsonb language plpgsql as $$
begin
  insert into pawl.operations (command, task_id, step, queue, actor, reason, outcome)
  values (command, (subject->>'task_id')::uuid, subject->>'step', subject->>'queue', current_setting('pawl.actor'),
    current_setting('pawl.reason'), subject - '{task_id,step,queue}'::text[] || outcome);
  perform set_config('pawl.actor', '', true), set_config('pawl.reason', '', true);
  return subject || outcome;
end $$;
