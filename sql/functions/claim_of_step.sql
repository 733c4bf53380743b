-- does: the entity claim that a step makes for the requester of its task: what the template says for that requester, else
--   for default. Null when it says none, or nothing.
-- called by: begin_claimed_delivery, close_entity_claim.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.claim_of_step(task_id uuid, step text) returns jsonb language sql stable as $$
  select case jsonb_typeof(c.claim) when 'object' then c.claim end
  from pawl.tasks t
  join pawl.template_steps ts on ts.template_id = t.template_id and ts.step = $2
  cross join lateral (select coalesce(ts.claim->t.requester, ts.claim->'default') as claim) c
  where t.task_id = $1
$$;
