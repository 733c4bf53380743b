package kit

import (
	"time"

	"github.com/google/uuid"
)

// World holds a task of every kind that rests: some ended each in its way, some open with each kind of owner.
type World struct {
	Complete, Failed, Blocked, Retrying, Running, Enqueued, Later uuid.UUID
	Cancelled, TimedOut, Resolved, Retried                        uuid.UUID
	Holding, Waiting, Claiming, Crashed                           uuid.UUID
	Slot, Gated, Paused                                           uuid.UUID
}

// long keeps what a world leaves claimed out of the readers' sight for as long as any test runs.
const long = `{"lease_ms": 36000000}`

// take claims the steps that wait in a queue, for long.
func (k *Kit) take(queue string) []Delivery {
	k.Helper()
	return Get[[]Delivery](k, "select pawl.claim_steps($1, 100, 'worker-1', $2::jsonb)", queue, long)
}

// Diamond is a template of four steps.
func Diamond() []Object { return []Object{Step("a"), Step("b: a"), Step("c: a"), Step("d: b c")} }

// Invoices makes a table of the user's, registers it, and applies billing/pay, whose first step claims its row.
func (k *Kit) Invoices(fields ...Object) {
	k.Helper()
	k.Exec(`create table invoices (number text primary key, status text not null, version int not null default 1)`)
	k.Exec(`insert into invoices select 'A-' || n, 'sent' from generate_series(1, 9) n`)
	k.Exec("select pawl.register_entity('invoice', $1, 'ann', 'first use')", Object{"table": "invoices", "key": "number",
		"status": "status", "version": "version", "module": "billing", "states": []string{"sent", "paying", "paid"}})
	k.Exec("select pawl.beat_janitor('billing')")
	claim := Object{"claim": Object{"default": Object{"entity": "invoice", "id": "${input.invoice}", "from": "sent", "into": "paying",
		"revert_to": "sent", "on_success": "paid", "on_busy": "wait"}}, "queue": "pay_queue"}
	k.Template("billing/pay", Object{}, Step("pay", append([]Object{claim}, fields...)...), Step("tell: pay", Object{"queue": "tell_queue"}))
}

// Pay submits billing/pay.
func (k *Kit) Pay(invoice string) uuid.UUID {
	k.Helper()
	return k.Submit("billing/pay", Object{"input": Object{"invoice": invoice}})
}

// NewWorld makes a world.
func NewWorld(k *Kit) World {
	k.Helper()
	var w World
	k.Template("shop/diamond", nil, Diamond()...)
	k.Template("shop/slow", Object{"timeout_ms": 1000}, Step("a", Object{"queue": "slow_queue"}))
	k.Template("shop/hold", Object{"on_failure": "hold"}, Step("a"), Step("b: a"))
	k.Template("shop/keyed", nil, Step("a", Object{"key": "${input.k}", "queue": "keyed_queue"}))
	k.Template("shop/gated", nil, Step("a", Object{"queue": "gated_queue"}))
	k.Template("shop/paused", nil, Step("a", Object{"queue": "paused_queue"}))

	w.Complete = k.Submit("shop/diamond", Object{"key": "S-1"})
	for range 3 {
		k.Finish(Queue, k.take(Queue)...)
	}
	w.Failed = k.Submit("shop/diamond", Object{"key": "S-2"})
	k.Report(Queue, k.take(Queue)[0], Failed(false, 0))
	w.Blocked = k.Submit("shop/hold")
	k.Report(Queue, k.take(Queue)[0], Failed(false, 0))
	w.Retrying = k.Submit("shop/diamond")
	k.Report(Queue, k.take(Queue)[0], Failed(true, 20*time.Hour))
	w.Retried = k.Submit("shop/diamond")
	k.Report(Queue, k.take(Queue)[0], Failed(false, 0))
	k.Exec("select pawl.retry_task($1, null, 'ann', 'again')", w.Retried)
	k.Report(Queue, k.take(Queue)[0], Failed(true, 0))
	k.Tick()
	k.Finish(Queue, k.take(Queue)...)
	w.Running = k.Submit("shop/diamond", Object{"key": "S-3"})
	k.take(Queue)
	w.Cancelled = k.Submit("shop/diamond", Object{"key": "S-4"})
	k.take(Queue)
	k.Exec("select pawl.cancel_task($1, 'ann', 'no use')", w.Cancelled)
	w.Resolved = k.Submit("shop/hold")
	k.Report(Queue, k.take(Queue)[0], Failed(false, 0))
	k.Exec("select pawl.resolve_task($1, '7', 'ann', 'by hand')", w.Resolved)
	w.Later = k.Submit("shop/diamond", Object{"run_at": "2999-01-01T00:00:00Z", "key": "S-5"})

	w.TimedOut = k.Submit("shop/slow")
	k.Later(time.Hour)
	k.Tick()
	k.Later(0)
	k.Claim("slow_queue") // absorbs what the task left
	w.special(k)
	k.Request("shop/diamond", Object{"key": "S-3"}) // a duplicate: absorbed
	for _, queue := range []string{"orchestration_step_results", Queue} {
		k.Exec("select pgmq.send($1, '{\"no\": \"sense\"}')", queue)
	}
	k.take(Queue)
	k.Rest()
	w.Enqueued = k.Submit("shop/diamond")
	return w
}

// special is the part of a world with gates, step keys and entity claims.
func (w *World) special(k *Kit) {
	k.Helper()
	w.Holding = k.Submit("shop/keyed", Object{"input": Object{"k": "one"}})
	k.take("keyed_queue")
	w.Waiting = k.Submit("shop/keyed", Object{"input": Object{"k": "one"}})
	k.Submit("shop/keyed", Object{"input": Object{"k": "two"}})
	k.Finish("keyed_queue", k.take("keyed_queue")...)

	k.Exec("select pawl.configure_queue('gated_queue', '{\"max_concurrency\": 1}', 'ann', 'weak machine')")
	w.Slot = k.Submit("shop/gated")
	w.Gated = k.Submit("shop/gated")
	k.Release()
	k.take("gated_queue")
	k.Exec("select pawl.pause_queue('paused_queue', 'ann', 'night')")
	w.Paused = k.Submit("shop/paused")

	k.Invoices()
	w.Crashed = k.Pay("A-1")
	k.Claim("pay_queue")
	k.Later(time.Hour)
	k.Exec("select pawl.revert_stale_claims('billing', 'janitor')")
	k.Later(0)
	k.Expire("pay_queue")
	w.Claiming = k.Pay("A-2")
	k.take("pay_queue")
}
