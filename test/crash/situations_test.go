package crash

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/test/kit"
)

// Operation is one of two that meet on the same task. Skips tells that it passes over what somebody holds, and comes back
// later: then an outcome without it is right as well.
type Operation struct {
	Call
	Skips  bool
	Partly string // a statement before it that hides the part of its work that it may pass over
}

// Situation is a state of things in which any two of its operations may meet.
type Situation struct {
	Name  string
	Setup func(k *kit.Kit) map[string]Operation
}

// names of a situation's operations.
func (s Situation) names(k *kit.Kit) []string {
	return slices.Sorted(maps.Keys(s.Setup(k)))
}

func command(sql string, args ...any) Operation { return Operation{Call: Call{sql, args}} }
func skipping(call Call) Operation              { return Operation{Call: call, Skips: true} }

func situations() []Situation {
	return []Situation{{"running", running}, {"failed", failure}, {"gated", gates}, {"entity", entity}, {"keyed", keyed}}
}

// running: b and c are claimed, b is over its timeout and its lease, a result of c came from elsewhere, and every engine
// queue asks for another look.
func running(k *kit.Kit) map[string]Operation {
	k.Helper()
	task := k.Submit("t/pair", object{"key": "one", "reply_to": "replies"})
	k.Finish(kit.Queue, k.ClaimOne(kit.Queue))
	claimed := k.Claim(kit.Queue)
	b, c := claimed[0], claimed[1]
	k.Later(time.Hour)
	k.Exec("update pgmq.q_work_queue set vt = clock_timestamp() where msg_id = $1", b.ID)
	k.Exec("select pgmq.send('orchestration_step_results', $1::jsonb)", object{"task_id": task, "step": "c", "attempt": 1, "status": "complete",
		"result": object{"by": "c"}})
	k.Exec("select pawl.send_step_enqueue(array[$1::uuid], 'look'), pawl.send_task_finalization(array[$1::uuid], 'look')", task)
	k.Send("t/pair", object{"key": "one"})
	return map[string]Operation{
		"report b":   {Call: reports(kit.Queue, report(b, kit.Complete(object{"by": "b"})))},
		"report c":   {Call: reports(kit.Queue, report(c, kit.Complete(object{"by": "c"})))},
		"fail b":     {Call: reports(kit.Queue, report(b, kit.Failed(false, 0)))},
		"retry b":    {Call: reports(kit.Queue, report(b, kit.Failed(true, time.Hour)))},
		"extend b":   skipping(Call{"select pawl.extend_leases('work_queue', $1)", []any{[]object{lease(b)}}}),
		"release c":  skipping(Call{"select pawl.release_steps('work_queue', $1)", []any{[]object{lease(c)}}}),
		"claim":      skipping(Call{SQL: "select pawl.claim_steps('work_queue', 10, 'worker-2')"}),
		"tick":       skipping(Call{SQL: "select pawl.fire_due(10, 'clock')"}),
		"apply":      skipping(waiting(k, "orchestration_step_results", "apply_step_results")),
		"enqueue":    skipping(waiting(k, "orchestration_step_enqueues", "process_step_enqueues")),
		"finalize":   skipping(waiting(k, "orchestration_task_finalizations", "finalize_tasks")),
		"request":    skipping(requests(k)),
		"reconcile":  skipping(Call{SQL: "select pawl.reconcile('kit')"}),
		"cancel":     command("select pawl.cancel_task($1, 'ann', 'no')", task),
		"complete b": command("select pawl.complete_step($1, 'b', 0, '7', 'ann', 'done')", task),
		"resolve":    command("select pawl.resolve_task($1, '7', 'ann', 'done')", task),
		"retry all":  command("select pawl.retry_task($1, 'a', 'ann', 'again')", task),
	}
}

// failure: the task ended in error; a request with its key waits.
func failure(k *kit.Kit) map[string]Operation {
	k.Helper()
	task := failed(k, "t/diamond")
	k.Send("t/diamond", object{"key": "one"})
	k.Exec("select pgmq.send('orchestration_step_results', $1::jsonb)", object{"task_id": task, "step": "a", "attempt": 1, "status": "complete"})
	return map[string]Operation{
		"request":      skipping(requests(k)),
		"apply":        skipping(waiting(k, "orchestration_step_results", "apply_step_results")),
		"retry task":   command("select pawl.retry_task($1, null, 'ann', 'again')", task),
		"retry a":      command("select pawl.retry_step($1, 'a', 0, 'ann', 'again')", task),
		"resolve a":    command("select pawl.resolve_step($1, 'a', 0, 'ann', 'done')", task),
		"complete a":   command("select pawl.complete_step($1, 'a', 0, '7', 'ann', 'done')", task),
		"resolve task": command("select pawl.resolve_task($1, '7', 'ann', 'done')", task),
		"cancel":       command("select pawl.cancel_task($1, 'ann', 'no')", task),
	}
}

// gates: one attempt has the only slot, another step waits behind it.
func gates(k *kit.Kit) map[string]Operation {
	k.Helper()
	k.Exec("select pawl.configure_queue('gated_queue', '{\"max_concurrency\": 1}', 'ann', 'x')")
	first := k.Submit("t/gated", object{"input": object{"first": 1}})
	k.Release()
	k.Submit("t/gated", object{"input": object{"second": 1}})
	d := k.ClaimOne("gated_queue")
	return map[string]Operation{
		"release":   skipping(Call{SQL: "select pawl.release_held(10, 'clock')"}),
		"claim":     skipping(Call{SQL: "select pawl.claim_steps('gated_queue', 10, 'worker-2')"}),
		"report":    {Call: reports("gated_queue", report(d, kit.Complete(object{"by": "a"})))},
		"fail":      {Call: reports("gated_queue", report(d, kit.Failed(true, time.Hour)))},
		"cancel":    command("select pawl.cancel_task($1, 'ann', 'no')", first),
		"configure": command("select pawl.configure_queue('gated_queue', '{\"max_concurrency\": 2}', 'ann', 'x')"),
		"open":      command("select pawl.configure_queue('gated_queue', '{\"max_concurrency\": null}', 'ann', 'x')"),
		"pause":     command("select pawl.pause_queue('gated_queue', 'ann', 'x')"),
	}
}

// entity: a step holds a claim on an invoice that is old enough for the janitor; its message is back, another waits.
func entity(k *kit.Kit) map[string]Operation {
	k.Helper()
	task := k.Pay("A-1")
	d := k.ClaimOne("pay_queue")
	k.Submit("billing/pay", object{"input": object{"invoice": "A-1", "second": 1}})
	k.Later(time.Hour)
	return map[string]Operation{
		"report": {Call: reports("pay_queue", report(d, kit.Complete(object{"by": "pay"})))},
		"fail":   {Call: reports("pay_queue", report(d, kit.Failed(false, 0)))},
		"claim": {Call: Call{SQL: "select pawl.claim_steps('pay_queue', 10, 'worker-2')"}, Skips: true,
			Partly: fmt.Sprintf("update pgmq.q_pay_queue set vt = clock_timestamp() + interval '1 h' where msg_id = %d", d.ID)},
		"extend":  skipping(Call{"select pawl.extend_leases('pay_queue', $1)", []any{[]object{lease(d)}}}),
		"release": skipping(Call{"select pawl.release_steps('pay_queue', $1)", []any{[]object{lease(d)}}}),
		"janitor": skipping(Call{SQL: "select pawl.revert_stale_claims('billing', 'janitor')"}),
		"cancel":  command("select pawl.cancel_task($1, 'ann', 'no')", task),
	}
}

// keyed: a step holds a key, a step of another task waits for it, a third task is on its way.
func keyed(k *kit.Kit) map[string]Operation {
	k.Helper()
	first := k.Submit("t/keyed", object{"input": object{"k": "one", "n": 1}})
	second := k.Submit("t/keyed", object{"input": object{"k": "one", "n": 2}})
	d := k.ClaimOne(kit.Queue)
	k.Send("t/keyed", object{"input": object{"k": "one", "n": 3}})
	k.Exec("select pawl.send_step_enqueue(array[$1::uuid], 'look')", second)
	return map[string]Operation{
		"report":        {Call: reports(kit.Queue, report(d, kit.Complete(object{"by": "a"})))},
		"fail":          {Call: reports(kit.Queue, report(d, kit.Failed(false, 0)))},
		"request":       skipping(requests(k)),
		"enqueue":       skipping(waiting(k, "orchestration_step_enqueues", "process_step_enqueues")),
		"cancel first":  command("select pawl.cancel_task($1, 'ann', 'no')", first),
		"cancel second": command("select pawl.cancel_task($1, 'ann', 'no')", second),
		"complete":      command("select pawl.complete_step($1, 'a', 0, '7', 'ann', 'done')", first),
	}
}
