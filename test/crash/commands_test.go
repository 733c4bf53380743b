package crash

import (
	"fmt"
	"time"

	"github.com/pawl-dev/pawl/test/kit"
)

// Operators' commands.
func commands() []Scenario {
	return []Scenario{
		{"cancel", func(k *kit.Kit) Call {
			task := k.Submit("t/diamond", object{"key": "one", "reply_to": "replies"})
			k.Claim(kit.Queue)
			return Call{SQL: "select pawl.cancel_task($1, 'ann', 'no')", Args: []any{task}}
		}},
		{"retry a task", func(k *kit.Kit) Call {
			return Call{SQL: "select pawl.retry_task($1, null, 'ann', 'again')", Args: []any{failed(k, "t/diamond")}}
		}},
		{"retry a running task from a step", func(k *kit.Kit) Call {
			task := k.Submit("t/diamond")
			until(k, "b")
			return Call{SQL: "select pawl.retry_task($1, 'a', 'ann', 'again')", Args: []any{task}}
		}},
		{"retry an unbuilt task", func(k *kit.Kit) Call {
			setting(k, "max_steps_per_transaction = 3")
			task := k.Submit("t/large")
			k.Exec("select pawl.cancel_task($1, 'ann', 'no')", task)
			return Call{SQL: "select pawl.retry_task($1, null, 'ann', 'again')", Args: []any{task}}
		}},
		{"retry a step", func(k *kit.Kit) Call {
			return Call{SQL: "select pawl.retry_step($1, 'a', 0, 'ann', 'again')", Args: []any{failed(k, "t/fast")}}
		}},
		{"resolve a step", func(k *kit.Kit) Call {
			return Call{SQL: "select pawl.resolve_step($1, 'a', 0, 'ann', 'done')", Args: []any{failed(k, "t/hold")}}
		}},
		{"complete a step", func(k *kit.Kit) Call {
			return Call{SQL: "select pawl.complete_step($1, 'a', 0, '7', 'ann', 'done')", Args: []any{failed(k, "t/diamond")}}
		}},
		{"complete a keyed step", func(k *kit.Kit) Call {
			task := k.Submit("t/keyed", object{"input": object{"k": "one"}})
			k.Submit("t/keyed", object{"input": object{"k": "one"}, "tags": []string{"second"}})
			return Call{SQL: "select pawl.complete_step($1, 'a', 0, '7', 'ann', 'done')", Args: []any{task}}
		}},
		{"resolve an open task", func(k *kit.Kit) Call {
			task := k.Submit("t/diamond", object{"key": "one", "reply_to": "replies"})
			return Call{SQL: "select pawl.resolve_task($1, '7', 'ann', 'done')", Args: []any{task}}
		}},
		{"resolve a failed task", func(k *kit.Kit) Call {
			return Call{SQL: "select pawl.resolve_task($1, '7', 'ann', 'done')", Args: []any{failed(k, "t/diamond")}}
		}},
		{"configure a queue", func(k *kit.Kit) Call {
			k.Submit("t/gated")
			return Call{SQL: "select pawl.configure_queue('gated_queue', '{\"max_concurrency\": 1, \"rate_limit\": \"100/sec\"}', 'ann', 'x')"}
		}},
		{"pause a queue", func(k *kit.Kit) Call {
			k.Submit("t/gated")
			return Call{SQL: "select pawl.pause_queue('gated_queue', 'ann', 'x')"}
		}},
		{"resume a queue", func(k *kit.Kit) Call {
			k.Exec("select pawl.pause_queue('gated_queue', 'ann', 'x')")
			k.Submit("t/gated")
			return Call{SQL: "select pawl.resume_queue('gated_queue', 'ann', 'x')"}
		}},
		{"configure a template", func(*kit.Kit) Call {
			return Call{SQL: "select pawl.configure_template('t', 'diamond', '{\"retention\": \"1d\", \"stuck_after\": {\"pending\": \"1h\"}}', 'ann', 'x')"}
		}},
		{"register a template", func(k *kit.Kit) Call {
			name := fmt.Sprint("once-", kit.Get[int64](k, "select nextval('pawl_test.version')"))
			return Call{SQL: "select pawl.adhoc_template('t', $1, 'work_queue')", Args: []any{name}}
		}},
		{"register a template with a claim", func(k *kit.Kit) Call {
			version := fmt.Sprint(kit.Get[int64](k, "select nextval('pawl_test.version') + 1"))
			return Call{SQL: "select pawl.register_template((select definition || jsonb_build_object('version', $1::text) from pawl.templates where name = 'pay' and version = '1'))",
				Args: []any{version}}
		}},
		{"configure the engine", func(*kit.Kit) Call {
			return Call{SQL: "select pawl.configure_engine('{\"absorbed_retention\": \"6d\"}', 'ann', 'x')"}
		}},
		{"look at a stuck task", func(k *kit.Kit) Call {
			k.Submit("t/stuck")
			k.Later(time.Hour)
			k.Exec("select pawl.reconcile('kit')")
			return Call{SQL: `select pawl.note_stuck_report(max(report_id), 'investigating', 'x', 'ann', 'x'), (select count(*) from pawl.get_next_ready_tasks()),
				(select pawl.transition_task_state_atomic(task_id, 'steps_in_process', 'steps_in_process') from pawl.tasks) from pawl.stuck_reports`}
		}},
		{"register an entity", func(*kit.Kit) Call {
			return Call{SQL: `select pawl.register_entity('bill', '{"table": "invoices", "key": "number", "status": "status", "version": "version",
				"module": "billing", "states": ["sent", "paid"]}', 'ann', 'x'), pawl.park_templates('ann', 'x'), pawl.beat_janitor('billing'),
				pawl.beat_processor('01890000-0000-7000-8000-000000000001', 'worker', 'here', 1, '1'),
				pawl.stop_processor('01890000-0000-7000-8000-000000000001')`}
		}},
	}
}

// Entity claims and step keys.
func special() []Scenario {
	claimed := func(k *kit.Kit) kit.Delivery { k.Pay("A-1"); return k.ClaimOne("pay_queue") }
	return []Scenario{
		{"claim an entity", func(k *kit.Kit) Call {
			k.Pay("A-1")
			k.Pay("A-1")
			k.Pay("A-99")
			return Call{SQL: "select pawl.claim_steps('pay_queue', 10, 'worker-1')"}
		}},
		{"claim an entity again", func(k *kit.Kit) Call {
			claimed(k)
			k.Expire("pay_queue")
			return Call{SQL: "select pawl.claim_steps('pay_queue', 10, 'worker-1')"}
		}},
		{"claim an entity again where busy fails", func(k *kit.Kit) Call {
			k.Submit("billing/once", object{"input": object{"invoice": "A-1"}})
			k.ClaimOne("pay_queue")
			k.Expire("pay_queue")
			return Call{SQL: "select pawl.claim_steps('pay_queue', 10, 'worker-1')"}
		}},
		{"report under a claim", func(k *kit.Kit) Call {
			return reports("pay_queue", report(claimed(k), kit.Complete(object{"by": "pay"})))
		}},
		{"report a failure under a claim", func(k *kit.Kit) Call {
			return reports("pay_queue", report(claimed(k), kit.Failed(true, 0)))
		}},
		{"report a lost claim", func(k *kit.Kit) Call {
			d := claimed(k)
			k.Exec("update invoices set status = 'sent', version = version + 1 where number = 'A-1'")
			return reports("pay_queue", report(d, kit.Complete(1)))
		}},
		{"apply a result under a claim", func(k *kit.Kit) Call {
			d := claimed(k)
			k.Exec("select pgmq.send('orchestration_step_results', $1::jsonb)", object{"task_id": d.Task, "step": d.Step, "attempt": 1, "status": "complete", "result": object{"by": "pay"}})
			k.Exec("select pgmq.delete('pay_queue', $1::bigint)", d.ID)
			return waiting(k, "orchestration_step_results", "apply_step_results")
		}},
		{"janitor", func(k *kit.Kit) Call {
			claimed(k)
			k.Later(time.Hour)
			return Call{SQL: "select pawl.revert_stale_claims('billing', 'janitor')"}
		}},
		{"janitor of a cancelled task", func(k *kit.Kit) Call {
			k.Exec("select pawl.cancel_task($1, 'ann', 'no')", claimed(k).Task)
			k.Later(time.Hour)
			return Call{SQL: "select pawl.revert_stale_claims('billing', 'janitor')"}
		}},
		{"claim what a cancelled task left", func(k *kit.Kit) Call {
			d := claimed(k)
			k.Exec("select pawl.cancel_task($1, 'ann', 'no')", d.Task)
			k.Exec("select pawl.release_steps('pay_queue', $1)", []object{lease(d)})
			return Call{SQL: "select pawl.claim_steps('pay_queue', 10, 'worker-1')"}
		}},
		{"cancel under a claim", func(k *kit.Kit) Call {
			return Call{SQL: "select pawl.cancel_task($1, 'ann', 'no')", Args: []any{claimed(k).Task}}
		}},
		{"fire a timeout while there is a claim", func(k *kit.Kit) Call {
			claimed(k)
			k.Submit("t/limit")
			k.ClaimOne(kit.Queue)
			k.Later(2 * time.Minute)
			return Call{SQL: "select pawl.fire_due(100, 'kit')"}
		}},
		{"complete a step with a key", func(k *kit.Kit) Call {
			k.Submit("t/keyed", object{"input": object{"k": "one"}})
			k.Submit("t/keyed", object{"input": object{"k": "one"}})
			return reports(kit.Queue, report(k.ClaimOne(kit.Queue), kit.Complete(object{"by": "a"})))
		}},
		{"fail a step with a key", func(k *kit.Kit) Call {
			k.Submit("t/keyed", object{"input": object{"k": "one"}})
			k.Submit("t/keyed", object{"input": object{"k": "one"}})
			return reports(kit.Queue, report(k.ClaimOne(kit.Queue), kit.Failed(false, 0)))
		}},
		{"look again at a step with a key", func(k *kit.Kit) Call {
			k.Submit("t/keyed", object{"input": object{"k": "one"}})
			second := k.Submit("t/keyed", object{"input": object{"k": "one"}})
			k.Finish(kit.Queue, k.ClaimOne(kit.Queue))
			k.Exec("select pawl.send_step_enqueue(array[$1::uuid], 'key')", second)
			return waiting(k, "orchestration_step_enqueues", "process_step_enqueues")
		}},
	}
}

// Reconciler, retention, dead letters.
func chores() []Scenario {
	return []Scenario{
		{"release held steps of which one raises", func(k *kit.Kit) Call {
			k.Exec("alter table pgmq.q_gated_queue drop constraint if exists closed, add constraint closed check (not message->'input' ? 'closed')")
			k.Exec("select pawl.configure_queue('gated_queue', '{\"max_concurrency\": 1}', 'ann', 'x')")
			k.Submit("t/gated", object{"input": object{"closed": 1}})
			k.Submit("t/gated")
			return Call{SQL: "select pawl.release_held(100, 'clock')"}
		}},
		{"ask which tasks somebody holds", func(k *kit.Kit) Call {
			k.Submit("t/diamond")
			k.ClaimOne(kit.Queue)
			return Call{SQL: "select pawl.held_tasks(array(select task_id from pawl.tasks))"}
		}},
		{"reconcile a lost message", func(k *kit.Kit) Call {
			k.Submit("t/retry")
			k.ClaimOne(kit.Queue)
			k.Exec("delete from pgmq.q_work_queue")
			k.Later(time.Hour)
			k.Exec("select pawl.reconcile('kit')")
			return Call{SQL: "select pawl.reconcile('kit')"}
		}},
		{"reconcile a claim whose result is gone", func(k *kit.Kit) Call {
			k.Pay("A-1")
			k.ClaimOne("pay_queue")
			k.Exec("update pawl.entity_claims set lease_until = 'infinity'") // as a report does whose row somebody holds
			return Call{SQL: "select pawl.reconcile('kit')"}
		}},
		{"reconcile queues and keys", func(k *kit.Kit) Call {
			k.Submit("t/retry")
			k.ClaimOne(kit.Queue)
			k.Exec("update pgmq.q_work_queue set read_ct = 10, vt = clock_timestamp()")
			k.Submit("t/keyed", object{"input": object{"k": "one"}})
			k.Submit("t/keyed", object{"input": object{"k": "one"}})
			k.Later(time.Hour)
			return Call{SQL: "select pawl.reconcile('kit')"}
		}},
		{"sweep", func(k *kit.Kit) Call {
			for _, template := range []string{"t/diamond", "t/keyed"} {
				k.Submit(template, object{"key": "one", "input": object{"k": "one"}})
				heal(k)
			}
			k.Exec("select pgmq.send('work_queue', '{\"no\": \"sense\"}')")
			k.Claim(kit.Queue)
			k.Later(100 * 24 * time.Hour)
			return Call{SQL: "select pawl.sweep(100, 'kit')"}
		}},
		{"redrive dead letters", func(k *kit.Kit) Call {
			k.Exec("select pgmq.send('orchestration_step_enqueues', '{\"no\": \"sense\"}')")
			call := waiting(k, "orchestration_step_enqueues", "process_step_enqueues")
			k.Exec(call.SQL, call.Args...)
			return Call{SQL: "select pawl.redrive_dead_letters('{}', 10, null, 'ann', 'again')"}
		}},
		{"drop dead letters", func(k *kit.Kit) Call {
			k.Exec("select pgmq.send('orchestration_step_enqueues', '{\"no\": \"sense\"}')")
			call := waiting(k, "orchestration_step_enqueues", "process_step_enqueues")
			k.Exec(call.SQL, call.Args...)
			return Call{SQL: "select pawl.drop_dead_letters('{}', 10, 'ann', 'again')"}
		}},
	}
}
