package doctor

// unseen are checks of the whole server, whose violations take minutes or disturb others: TestServerChecksFindWhatOthersDo
// asks them with a lower threshold.
var unseen = map[string]bool{"H1": true, "H2": true, "H3": true, "H4": true}

// lowered says what of an unseen check to replace so that an ordinary session violates it.
var lowered = map[string][]string{
	"H1": {"interval '5 minutes'", "interval '0'"}, "H2": {"interval '10 minutes'", "interval '0'"},
	"H3": {"u > 0.01", "u >= 0"}, "H4": {"d.deadlocks > 0", "d.deadlocks >= 0"},
}

// mutations seeds a violation of each check into a healthy world. Statements end with ;; .
var mutations = map[string]string{
	"A1": `update pawl.audit set event = 'teleported' where task_id = :Running and step is null`,
	"A2": `update pawl.audit set from_state = 'in_progress' where task_id = :Complete and step = 'a' and revision = 2`,
	"A3": `delete from pawl.audit where task_id = :Complete and step = 'b' and revision = 2`,
	"A4": `update pawl.steps set state = 'enqueued', worker = null where task_id = :Running and step = 'a'`,
	"A5": `update pawl.audit set actor = null where task_id = :Retried and from_state = 'error'`,
	"A6": `insert into pawl.audit (task_id, from_state, to_state, event, revision, at) values
		(:Complete, 'evaluating_results', 'complete', 'finalized', 4, now())`,
	"A7": `update pawl.audit set to_state = 'half_done' where task_id = :Running and step = 'a' and revision = 2`,
	"A8": `update pawl.audit set xid = '1' where task_id = :Complete and step = 'a' and revision in (1, 3);;
		update pawl.audit set xid = '2' where task_id = :Complete and step = 'a' and revision = 2`,

	"B1":  `update pawl.steps set state = 'cancelled' where task_id = :Complete and step = 'c'`,
	"B2":  `update pawl.steps set state = 'complete', worker = null where task_id = :Running`,
	"B3":  `update pawl.steps set state = 'complete' where task_id = :Failed`,
	"B4":  `update pawl.steps set state = 'pending' where task_id = :Cancelled and step = 'b'`,
	"B5":  `update pawl.steps set state = 'enqueued' where task_id = :Running and step = 'b'`,
	"B6":  `update pawl.steps set template_id = template_id + 1 where task_id = :Running and step = 'b'`,
	"B7":  `delete from pawl.steps where task_id = :Running and step = 'd'`,
	"B8":  `alter table pawl.tasks drop constraint final_has_time;; update pawl.tasks set finalized_at = now() where task_id = :Running`,
	"B9":  `insert into pawl.template_edges (template_id, parent, child) select template_id, 'd', 'a' from pawl.tasks where task_id = :Running`,
	"B10": `update pawl.tasks set open_count = open_count + 1 where task_id = :Running`,
	"B11": `update pawl.tasks set active_count = 0 where task_id = :Running`,
	"B12": `update pawl.tasks set state = 'waiting_for_retry' where task_id = :Running`,
	"B13": `update pawl.steps set needs_open = 3 where task_id = :Running and step = 'd'`,

	"C1":  `delete from pgmq.q_work_queue where message->>'task_id' = :Enqueued`,
	"C2":  `delete from pgmq.q_work_queue where message->>'task_id' = :Running`,
	"C3":  `update pawl.steps set due_at = null where task_id = :Retrying and step = 'a'`,
	"C4":  `delete from pawl.steps where task_id = :Enqueued and step = 'a'`,
	"C5":  `update pgmq.q_work_queue set message = message || '{"attempt": 2}' where message->>'task_id' = :Running`,
	"C6":  `update pawl.steps set attempt = 2 where task_id = :Enqueued and step = 'a'`,
	"C7":  `select pgmq.send('orchestration_step_enqueues', '{"v": 1}')`,
	"C8":  `update pgmq.q_work_queue set read_ct = 12, vt = clock_timestamp() where message->>'task_id' = :Running`,
	"C9":  `update pgmq.q_work_queue set vt = clock_timestamp() where message->>'task_id' = :Enqueued`,
	"C12": `insert into pgmq.q_work_queue (vt, message) select clock_timestamp(), message from pgmq.q_work_queue where message->>'task_id' = :Running`,

	"D3":  `update pawl.steps set failures = 4 where task_id = :Retrying and step = 'a'`,
	"D4":  `update pawl.audit set attempt = 2 where task_id = :Complete and step = 'a' and revision = 3`,
	"D5":  `update pawl.audit set attempt = 1 where task_id = :Retried and step = 'a' and to_state in ('enqueued', 'in_progress')`,
	"D6":  `update pawl.audit set attempt = 1 where task_id = :Retried and step = 'a' and from_state = 'in_progress'`,
	"D8":  `delete from pawl.audit where task_id = :Complete and step = 'a' and to_state = 'complete'`,
	"D9":  `update pawl.audit set from_state = 'error' where task_id = :Complete and step = 'a' and to_state = 'in_progress'`,
	"D10": `update pawl.steps set error = '{"type": "boom", "retryable": false}' where task_id = :Retrying and step = 'a'`,
	"D11": `update pawl.steps set due_at = state_since - interval '1 s' where task_id = :Retrying and step = 'a'`,
	"D12": `alter table pawl.steps drop constraint in_progress_has_worker;; update pawl.steps set worker = 'me' where task_id = :Complete and step = 'a'`,
	"D13": `select pgmq.send('orchestration_step_results', jsonb_build_object('task_id', :Running::text, 'step', 'a', 'attempt', 1, 'status', 'complete'))`,

	"E1":  `update pawl.tasks set key = 'S-3', scope = (select scope from pawl.tasks where task_id = :Running), epoch = 2 where task_id = :Enqueued`,
	"E2":  `update pawl.tasks set key = 'S-1', scope = (select scope from pawl.tasks where task_id = :Complete), epoch = 1 where task_id = :Failed`,
	"E8":  `insert into pawl.operations (command, task_id, actor, reason, outcome) values ('cancel_task', :Running, 'ann', 'no', '{"outcome": "cancelled"}')`,
	"E9":  `update pawl.task_identities set status = 'failed' where task_id = :Running`,
	"E10": `update pawl.steps set state = 'error', worker = null where task_id = :Holding`,
	"E11": `update pawl.steps set state = 'pending' where task_id = :Waiting`,
	"E12": `update pawl.steps set attempt = 2 where task_id = :Claiming and step = 'pay'`,

	"F1": `insert into pawl.held_steps select task_id, step, index, queue, 1, now(), now() + interval '1 min' from pawl.held_steps where task_id = :Gated
		on conflict (task_id, step, index) do update set released_at = now() + interval '1 min'`,
	"F2": `update pawl.queues set rate_limit = 1, rate_period = '1 h', burst = 1, created_at = '-infinity' where queue = 'work_queue'`,
	"F3": `update pawl.dead_letters set msg_id = (select msg_id from pgmq.q_work_queue where message->>'task_id' = :Running) where queue = 'work_queue'`,
	"F4": `update pawl.dead_letters set reason = ' ' where queue = 'work_queue'`,
	"F5": `insert into pawl.dead_letters (queue, message, reason, task_id, step) select 'work_queue', '{"attempt": 1}', 'twice', :Running, 'a' from generate_series(1, 2)`,
	"F6": `update pawl.steps set state = 'complete', worker = null where task_id = :Slot`,
	"F7": `update pawl.steps set state = 'cancelled' where task_id = :Gated`,

	"G1": `update pawl.steps set state = 'pending', worker = null, needs_open = 1 where task_id = :Running and step = 'a'`,
	"G2": `delete from pawl.held_steps where task_id = :Gated`,
	"G3": `update pgmq.q_work_queue set vt = clock_timestamp() - interval '1 s' where message->>'task_id' = :Running`,
	"G4": `update pawl.steps set due_at = now() - interval '1 h' where task_id = :Running and step = 'a'`,
	"G5": `delete from pawl.step_key_waiters where task_id = :Waiting`,
	"G6": `update pawl.queues set paused = false where queue = 'paused_queue'`,
	"G7": `insert into pawl.repairs (kind, cause, task_id, at) values ('message lost', 'engine', :Running, now())`,

	"H5":  `create sequence pawl.small as int`,
	"H6":  `select setval('pgmq.q_work_queue_msg_id_seq', 9223372036854775807 / 50)`,
	"H7":  `alter table pawl.operations add column local_time timestamp`,
	"H8":  `alter table pawl.operations add constraint later check (actor <> '') not valid`,
	"H9":  `create function pawl.loose() returns int language sql security definer as 'select 1'`,
	"H10": `insert into pgmq.meta (queue_name, is_partitioned, is_unlogged) values ('Work_Queue', false, false)`,
	"H11": `alter table pgmq.q_paused_queue set unlogged`,
	"H12": `drop function pawl_queues.touch_work_queue`,
	"H13": `create table pawl.strangers (queue text, attempt int, primary key (queue, attempt));;
		alter table pawl.held_steps add constraint of_queue foreign key (queue, attempt) references pawl.strangers (queue, attempt) not valid`,
	"H14": `alter table pawl.steps disable trigger guard_update`,
	"H15": `insert into pawl.processors (processor_id, kind, host, pid, version, heartbeat_at)
		values (gen_random_uuid(), 'orchestrator', 'box', 7, '1', pawl.now() - interval '31 s');;
		select pgmq.send('orchestration_task_requests', '{"template": "a/b"}')`,
	"H16": `update pgmq.q_keyed_queue set vt = clock_timestamp() - interval '61 s'`,
	"H17": `insert into pawl.dead_letters (queue, message, reason) values ('work_queue', '{}', 'no sense')`,
}
