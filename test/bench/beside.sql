-- What other templates of the same database use: a paused queue with steps behind its gate, a queue with concurrency slots,
-- held step keys, entity claims, held keys of tasks. The template that is measured uses none of it.
create table shelf (shelf_id text primary key, status text not null, version int not null);
select pawl.register_entity('shelf', '{"table": "public.shelf", "key": "shelf_id", "status": "status", "version": "version",
  "states": ["free", "taken", "full"], "module": "stock"}', 'bench', 'others use claims');
select pawl.install_queue('paused_queue'), pawl.install_queue('slots_queue');
select pawl.configure_queue('slots_queue', '{"max_concurrency": 100}', 'bench', 'others use slots');
select pawl.pause_queue('paused_queue', 'bench', 'others use gates');
insert into pawl.held_steps (task_id, step, queue, attempt, held_at, released_at)
select gen_random_uuid(), 'a', case when i <= 100 then 'slots_queue' else 'paused_queue' end, 1, now(), case when i <= 100 then now() end
from generate_series(1, 1000) i;
insert into pawl.step_identities (scope, key, task_id, step, status)
select 'others', i::text, gen_random_uuid(), 'a', 'running' from generate_series(1, 1000) i;
insert into pawl.entity_claims (entity, entity_id, task_id, step, attempt, version, revert_to, on_success, claimed_at, lease_until)
select 'shelf', i::text, gen_random_uuid(), 'a', 1, 1, 'free', 'full', now(), now() + interval '1 hour' from generate_series(1, 1000) i;
insert into pawl.task_identities (scope, key, task_id, status, fingerprint)
select 'others', i::text, gen_random_uuid(), 'running', ''::bytea from generate_series(1, 1000) i;
analyze;
