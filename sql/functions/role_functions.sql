-- does: the functions that run with the owner's rights: those that pawl_producer, pawl_worker and pawl_operator call, and the one
--   by which pawl_orchestrator, which sees no table of the user's, ends entity claims.
-- called by: install_roles.
-- locks: nothing.
-- raises: nothing.
create or replace function pawl.role_functions() returns table (role text, name text, signature regprocedure)
language sql stable as $$
  select w.role, p.proname::text, p.oid::regprocedure
  from (values
    ('pawl_producer', array['submit_requests']),
    ('pawl_worker', array['claim_steps', 'report_steps', 'report_and_claim_steps', 'extend_leases', 'release_steps']),
    ('pawl_operator', array['cancel_task', 'retry_task', 'retry_step', 'resolve_step', 'complete_step', 'resolve_task',
      'redrive_dead_letters', 'drop_dead_letters', 'pause_queue', 'resume_queue', 'configure_queue', 'configure_template', 'configure_engine',
      'explain_task', 'stuck_tasks', 'note_stuck_report', 'get_step_readiness_status', 'get_next_ready_tasks',
      'would_create_cycle',
      'register_template', 'register_entity', 'claim_coverage', 'park_templates', 'unpark_templates', 'beat_janitor',
      'revert_stale_claims', 'grant_queue', 'revoke_queue']),
    ('pawl_orchestrator', array['end_entity_claims'])) w(role, names)
  join pg_proc p on p.proname = any (w.names) and p.pronamespace = 'pawl'::regnamespace
  order by 1, 2
$$;
