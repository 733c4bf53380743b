package crash

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/pawl-dev/pawl/test/kit"
)

// Scenario is an operation that writes, and how things stand when it begins.
type Scenario struct {
	Name  string
	Setup func(k *kit.Kit) Call
}

type object = kit.Object

// templates of the lab.
func templates(k *kit.Kit) {
	k.Helper()
	none := object{"retry": object{"max_attempts": 3, "backoff": "none"}}
	k.Exec("select pgmq.create('replies')")
	k.Template("t/closed", nil, kit.Step("a", object{"queue": "closed_queue"})) // here: each queue has its points in the reconciler
	k.Exec("alter table pgmq.q_closed_queue add constraint closed check (message is null)")
	k.Template("t/diamond", nil, kit.Diamond()...)
	k.Template("t/fast", object{"on_failure": "fail_fast"}, kit.Step("a"), kit.Step("b"), kit.Step("z: a b"))
	k.Template("t/hold", object{"on_failure": "hold"}, kit.Step("a"), kit.Step("z: a"))
	k.Template("t/retry", nil, kit.Step("a", none), kit.Step("z: a"))
	k.Template("t/limit", nil, kit.Step("a", object{"timeout_ms": 60_000}, none), kit.Step("z: a"))
	k.Template("t/deadline", object{"timeout_ms": 60_000}, kit.Step("a"), kit.Step("z: a"))
	k.Template("t/keyed", nil, kit.Step("a", object{"key": "${input.k}", "handler": "do.keyed"}, none), kit.Step("z: a"))
	k.Template("t/gated", nil, kit.Step("a", object{"queue": "gated_queue"}), kit.Step("z: a"))
	k.Template("t/wide", nil, kit.Step("a"), kit.Step("b"), kit.Step("c"), kit.Step("d"), kit.Step("e"))
	k.Template("t/stuck", object{"stuck_after": object{"steps_in_process": 1000}}, kit.Step("a"))
	k.Template("t/large", nil, kit.Step("a"), kit.Step("b: a"), kit.Step("c: a"), kit.Step("d: a"), kit.Step("z: b c d"))
	k.Invoices(object{"on_crash": "retry"})
	k.Template("billing/once", nil, kit.Step("pay", object{"queue": "pay_queue", "on_crash": "retry", "claim": object{"default": object{
		"entity": "invoice", "id": "${input.invoice}", "from": "sent", "into": "paying", "revert_to": "sent", "on_success": "paid", "on_busy": "fail"}}}))
}

// scenarios of every operation that writes.
func scenarios() []Scenario {
	var all []Scenario
	for _, group := range [][]Scenario{doors(), outcomes(), engine(), clock(), commands(), special(), chores()} {
		all = append(all, group...)
	}
	return all
}

// lease of a claimed step.
func lease(d kit.Delivery) object { return object{"msg_id": d.ID, "read_ct": d.ReadCount} }

// report of a claimed step.
func report(d kit.Delivery, end object) object {
	r := lease(d)
	for field, value := range end {
		r[field] = value
	}
	return r
}

func reports(queue string, all ...object) Call {
	return Call{SQL: "select pawl.report_steps($1, $2, 'worker-1')", Args: []any{queue, all}}
}

// requests makes the call of the task-request actor for all requests that wait.
func requests(k *kit.Kit) Call {
	k.Helper()
	return Call{SQL: kit.ProcessRequests, Args: []any{kit.List[int64](k, "select msg_id from pgmq.q_orchestration_task_requests order by 1")}}
}

// Ids of requests that a client makes itself.
const (
	firstID  = "01890000-0000-7000-8000-000000000001"
	secondID = "01890000-0000-7000-8000-000000000002"
	thirdID  = "01890000-0000-7000-8000-000000000003"
)

// submit makes the call of a client.
func submit(bodies ...object) Call {
	var texts []string
	for _, body := range bodies {
		if body["input"] == nil {
			body["input"] = object{}
		}
		text, err := json.Marshal(body)
		if err != nil {
			panic(err)
		}
		texts = append(texts, string(text))
	}
	return Call{SQL: "select pawl.submit_requests($1, array_fill(null::text, array[cardinality($1::text[])]))", Args: []any{texts}}
}

// waiting makes the call of an actor for all messages of its queue.
func waiting(k *kit.Kit, queue, function string) Call {
	k.Helper()
	ids := kit.List[int64](k, "select msg_id from pgmq.q_"+queue+" order by 1")
	return Call{SQL: "select pawl." + function + "($1, 'kit')", Args: []any{ids}}
}

func setting(k *kit.Kit, what string) { k.Helper(); k.Exec("update pawl.engine_settings set " + what) }

// Requests, claims, heartbeats.
func doors() []Scenario {
	claim := Call{SQL: "select pawl.claim_steps('work_queue', 10, 'worker-1')"}
	return []Scenario{
		{"request", func(k *kit.Kit) Call {
			k.Send("t/diamond", object{"key": "one", "reply_to": "replies"})
			k.Send("t/diamond", object{"key": "one", "reply_to": "replies"})
			k.Send("t/diamond", object{"key": "one", "on_duplicate": "reject", "reply_to": "nowhere"})
			k.Send("t/diamond", object{"key": "one", "input": object{"other": 1}})
			k.Send("t/retry", object{"request_id": firstID})
			k.Send("t/retry", object{"request_id": firstID})
			return requests(k)
		}},
		{"request refused", func(k *kit.Kit) Call {
			id := k.Send("t/diamond", object{"reply_to": "replies"})
			return Call{SQL: `select pawl.process_task_requests(jsonb_build_array(jsonb_build_object('msg_id', $1::bigint, 'invalid',
				'{"error": "InvalidRequest", "message": "no"}'::jsonb)), 'kit')`, Args: []any{id}}
		}},
		{"request put back", func(k *kit.Kit) Call {
			k.Send("t/diamond", object{"v": 2})
			k.Exec("select pawl_queues.read_orchestration_task_requests(10, 30000, 1000000)")
			return Call{SQL: "select pawl.put_back_requests(array(select msg_id from pgmq.q_orchestration_task_requests), '{1}')"}
		}},
		{"request again", func(k *kit.Kit) Call {
			id := object{"request_id": firstID}
			k.Submit("t/diamond", id)
			k.Send("t/diamond", id)
			return requests(k)
		}},
		{"request takes an ended key", func(k *kit.Kit) Call {
			k.Exec("select pawl.cancel_task($1, 'ann', 'no')", k.Submit("t/diamond", object{"key": "one"}))
			k.Send("t/diamond", object{"key": "one"})
			return requests(k)
		}},
		{"request for later, gated and keyed", func(k *kit.Kit) Call {
			k.Exec("select pawl.configure_queue('gated_queue', '{\"max_concurrency\": 1}', 'ann', 'x')")
			k.Send("t/retry", object{"run_at": "2020-01-01T00:00:00Z"})
			k.Send("t/gated")
			k.Send("t/gated", object{"input": object{"second": 1}})
			k.Send("t/keyed", object{"input": object{"k": "one"}})
			k.Send("t/keyed", object{"input": object{"no": "key"}})
			return requests(k)
		}},
		{"submit", func(*kit.Kit) Call {
			return submit(object{"template": "t/diamond", "request_id": firstID}, object{"handler": "do.adhoc", "request_id": secondID},
				object{"template": "t/retry", "request_id": thirdID})
		}},
		{"submit of what waits at a gate", func(k *kit.Kit) Call {
			k.Exec("select pawl.configure_queue('gated_queue', '{\"max_concurrency\": 1}', 'ann', 'x')")
			return submit(object{"template": "t/diamond", "request_id": firstID}, object{"template": "t/gated", "request_id": secondID})
		}},
		{"submit again", func(k *kit.Kit) Call {
			k.Submit("t/diamond", object{"request_id": firstID})
			return submit(object{"template": "t/diamond", "request_id": firstID}, object{"template": "t/retry", "request_id": secondID})
		}},
		{"claim", func(k *kit.Kit) Call {
			k.Submit("t/diamond")
			k.Submit("t/fast")
			return claim
		}},
		{"claim odd messages", func(k *kit.Kit) Call {
			k.Submit("t/diamond")
			over := k.Submit("t/retry")
			k.Exec("select pgmq.send('work_queue', '{\"task_id\": \"nobody\"}')")
			k.Exec("update pgmq.q_work_queue set read_ct = 10 where message->>'task_id' = $1", over.String())
			k.Exec("select pawl.cancel_task($1, 'ann', 'no')", k.Submit("t/hold"))
			raises := k.Submit("t/retry", object{"input": object{"raises": 1}})
			k.Exec("update pgmq.q_work_queue set headers = '{\"timeout_ms\": \"x\"}' where message->>'task_id' = $1", raises.String())
			return claim
		}},
		{"claim and report", func(k *kit.Kit) Call {
			k.Submit("t/diamond")
			return Call{SQL: "select pawl.report_and_claim_steps('work_queue', $1, 10, 'worker-1')",
				Args: []any{[]object{report(k.ClaimOne(kit.Queue), kit.Complete(1))}}}
		}},
		{"extend", func(k *kit.Kit) Call {
			k.Pay("A-1")
			return Call{SQL: "select pawl.extend_leases('pay_queue', $1)", Args: []any{[]object{lease(k.ClaimOne("pay_queue"))}}}
		}},
		{"release", func(k *kit.Kit) Call {
			k.Pay("A-1")
			return Call{SQL: "select pawl.release_steps('pay_queue', $1)", Args: []any{[]object{lease(k.ClaimOne("pay_queue"))}}}
		}},
	}
}

// until works a task until one of its steps can be claimed, and claims it.
func until(k *kit.Kit, step string) kit.Delivery {
	k.Helper()
	for {
		for _, d := range k.Claim(kit.Queue) {
			if d.Step == step {
				return d
			}
			k.Finish(kit.Queue, d)
		}
	}
}

// Ends of attempts, applied by who reports them; with other settings through the queues.
func outcomes() []Scenario {
	return []Scenario{
		{"report complete", func(k *kit.Kit) Call {
			k.Submit("t/diamond", object{"key": "one"})
			k.Submit("t/fast")
			var all []object
			for _, d := range k.Claim(kit.Queue) {
				all = append(all, report(d, kit.Complete(object{"by": d.Step})))
			}
			return reports(kit.Queue, all...)
		}},
		{"report the last step", func(k *kit.Kit) Call {
			k.Submit("t/diamond", object{"key": "one", "reply_to": "replies"})
			return reports(kit.Queue, report(until(k, "d"), kit.Complete(object{"by": "d"})))
		}},
		{"report failed, retried", func(k *kit.Kit) Call {
			k.Submit("t/retry")
			return reports(kit.Queue, report(k.ClaimOne(kit.Queue), kit.Failed(true, 0)))
		}},
		{"report failed for good", func(k *kit.Kit) Call {
			k.Submit("t/diamond", object{"key": "one", "reply_to": "replies"})
			return reports(kit.Queue, report(k.ClaimOne(kit.Queue), kit.Failed(false, 0)))
		}},
		{"report rejected, fail fast", func(k *kit.Kit) Call {
			k.Submit("t/fast")
			claimed := k.Claim(kit.Queue)
			return reports(kit.Queue, report(claimed[0], object{"status": "rejected", "error": object{"type": "no"}}),
				report(claimed[1], kit.Complete(1)))
		}},
		{"report failed, hold", func(k *kit.Kit) Call {
			k.Submit("t/hold")
			return reports(kit.Queue, report(k.ClaimOne(kit.Queue), kit.Failed(false, 0)))
		}},
		{"report late", func(k *kit.Kit) Call {
			k.Submit("t/diamond")
			d := k.ClaimOne(kit.Queue)
			k.Expire(kit.Queue)
			k.Claim(kit.Queue)
			return reports(kit.Queue, report(d, kit.Complete("late")))
		}},
		{"report a step of a freed slot", func(k *kit.Kit) Call {
			k.Exec("select pawl.configure_queue('gated_queue', '{\"max_concurrency\": 1}', 'ann', 'x')")
			k.Submit("t/gated")
			k.Submit("t/gated", object{"input": object{"second": 1}})
			k.Release()
			return reports("gated_queue", report(k.ClaimOne("gated_queue"), kit.Complete(object{"by": "a"})))
		}},
	}
}

// The actors' functions.
func engine() []Scenario {
	staged := func(name string, fn func(k *kit.Kit) Call) Scenario {
		return Scenario{name, func(k *kit.Kit) Call { setting(k, "staged = true"); return fn(k) }}
	}
	return []Scenario{
		{"apply results", func(k *kit.Kit) Call {
			setting(k, "direct = false")
			k.Submit("t/diamond")
			k.Submit("t/fast")
			for i, d := range k.Claim(kit.Queue) {
				end := kit.Complete(object{"by": d.Step})
				if i == 1 {
					end = kit.Failed(false, 0)
				}
				k.Report(kit.Queue, d, end)
			}
			k.Exec("select pgmq.send('orchestration_step_results', '{\"no\": \"sense\"}')")
			k.Exec("select pgmq.send('orchestration_step_results', message) from pgmq.q_orchestration_step_results where message->>'status' = 'complete'")
			k.Exec("select pgmq.send('orchestration_step_results', message || '{\"attempt\": 9}') from pgmq.q_orchestration_step_results where message->>'status' = 'failed'")
			return waiting(k, "orchestration_step_results", "apply_step_results")
		}},
		staged("report, staged", func(k *kit.Kit) Call {
			k.Submit("t/diamond")
			k.Rest()
			k.Finish(kit.Queue, k.ClaimOne(kit.Queue))
			return waiting(k, "orchestration_step_results", "apply_step_results")
		}),
		staged("enqueue, staged", func(k *kit.Kit) Call {
			k.Submit("t/diamond")
			k.Exec("select pgmq.send('orchestration_step_enqueues', '{\"no\": \"sense\"}')")
			return waiting(k, "orchestration_step_enqueues", "process_step_enqueues")
		}),
		staged("finalize, staged", func(k *kit.Kit) Call {
			k.Submit("t/hold", object{"reply_to": "replies", "key": "one"})
			for _, step := range []string{"a", "z"} {
				k.Rest()
				d := k.ClaimOne(kit.Queue)
				k.Finish(kit.Queue, d)
				if step == "z" {
					ids := kit.List[int64](k, "select msg_id from pgmq.q_orchestration_step_results")
					k.Exec("select pawl.apply_step_results($1)", ids)
				}
			}
			k.Exec("select pgmq.send('orchestration_task_finalizations', '{\"no\": \"sense\"}')")
			k.Exec("select pgmq.send('orchestration_task_finalizations', message) from pgmq.q_orchestration_task_finalizations where message ? 'task_id'")
			return waiting(k, "orchestration_task_finalizations", "finalize_tasks")
		}),
		{"build a large task", func(k *kit.Kit) Call {
			setting(k, "max_steps_per_transaction = 3")
			k.Submit("t/large")
			return waiting(k, "orchestration_step_enqueues", "process_step_enqueues")
		}},
		{"build the rest of a large task", func(k *kit.Kit) Call {
			setting(k, "max_steps_per_transaction = 3")
			k.Submit("t/large")
			call := waiting(k, "orchestration_step_enqueues", "process_step_enqueues")
			k.Exec(call.SQL, call.Args...)
			return waiting(k, "orchestration_step_enqueues", "process_step_enqueues")
		}},
		{"more ready steps than a transaction takes", func(k *kit.Kit) Call {
			setting(k, "max_steps_per_transaction = 2")
			k.Submit("t/large")
			k.Rest()
			return reports(kit.Queue, report(k.ClaimOne(kit.Queue), kit.Complete(object{"by": "a"})))
		}},
		{"more ready steps at once", func(k *kit.Kit) Call {
			setting(k, "max_steps_per_transaction = 2")
			k.Submit("t/wide")
			for range 2 {
				call := waiting(k, "orchestration_step_enqueues", "process_step_enqueues")
				k.Exec(call.SQL, call.Args...)
			}
			return waiting(k, "orchestration_step_enqueues", "process_step_enqueues")
		}},
		{"a message of a newer version", func(k *kit.Kit) Call {
			k.Exec("select pgmq.send('orchestration_task_finalizations', '{\"v\": 2}')")
			return waiting(k, "orchestration_task_finalizations", "finalize_tasks")
		}},
		{"dead-letter a message", func(k *kit.Kit) Call {
			setting(k, "direct = false")
			k.Submit("t/retry")
			k.Finish(kit.Queue, k.ClaimOne(kit.Queue))
			ids := kit.List[int64](k, "select msg_id from pgmq.q_orchestration_step_results")
			return Call{SQL: "select pawl.dead_letter_messages('orchestration_step_results', $1, 'it raises')", Args: []any{ids}}
		}},
	}
}

// The clock and the gates.
func clock() []Scenario {
	tick := Call{SQL: "select pawl.fire_due(100, 'clock')"}
	return []Scenario{
		{"start tasks", func(k *kit.Kit) Call {
			setting(k, "max_steps_per_transaction = 4")
			k.Submit("t/diamond", object{"run_at": "2020-01-01T00:00:00Z"})
			k.Submit("t/large", object{"run_at": time.Now().Add(30 * time.Minute).Format(time.RFC3339)})
			k.Submit("t/retry", object{"run_at": time.Now().Add(30 * time.Minute).Format(time.RFC3339)})
			k.Later(time.Hour)
			return tick
		}},
		{"start tasks of which one raises", func(k *kit.Kit) Call {
			for _, template := range []string{"t/closed", "t/retry", "t/diamond"} {
				k.Submit(template, object{"run_at": time.Now().Add(30 * time.Minute).Format(time.RFC3339)})
			}
			k.Later(time.Hour)
			return tick
		}},
		{"retry what waited", func(k *kit.Kit) Call {
			k.Submit("t/retry")
			k.Report(kit.Queue, k.ClaimOne(kit.Queue), kit.Failed(true, 0))
			return tick
		}},
		{"time out a step", func(k *kit.Kit) Call {
			k.Submit("t/limit")
			k.ClaimOne(kit.Queue)
			k.Later(time.Hour)
			return tick
		}},
		{"time out a task", func(k *kit.Kit) Call {
			k.Submit("t/deadline", object{"reply_to": "replies", "key": "one"})
			k.ClaimOne(kit.Queue)
			k.Later(time.Hour)
			return tick
		}},
		{"release held steps", func(k *kit.Kit) Call {
			k.Exec("select pawl.configure_queue('gated_queue', '{\"max_concurrency\": 1, \"rate_limit\": \"100/sec\"}', 'ann', 'x')")
			k.Submit("t/gated")
			k.Submit("t/gated", object{"input": object{"second": 1}})
			return Call{SQL: "select pawl.release_held(100, 'clock')"}
		}},
	}
}

// failed makes a task of a template whose first step failed for good.
func failed(k *kit.Kit, template string) uuid.UUID {
	k.Helper()
	task := k.Submit(template, object{"key": "one", "reply_to": "replies"})
	for i, d := range k.Claim(kit.Queue) {
		if i == 0 {
			k.Report(kit.Queue, d, kit.Failed(false, 0))
		}
	}
	return task
}
