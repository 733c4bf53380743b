package invoices_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/examples/invoices"
)

func TestFiftyCallersRegenerateOnce(t *testing.T) {
	k := open(t, nil)
	k.employ(&invoices.Billing{Compute: func(context.Context, int64) (int64, error) { return 10900, nil }})
	k.employ(&invoices.Billing{Compute: func(context.Context, int64) (int64, error) { return 10900, nil }})
	require.Equal(t, map[string]int{"complete": 1, "error": 49}, k.ends(k.submit("regenerate_invoice", 50)))
	require.Equal(t, "replaced", k.status())
	require.Equal(t, 1, k.count("invoices where replaces = $1 and number = '2024-17' and total_cents = 10900", k.invoice))
	require.Equal(t, 49, k.count("pawl.tasks where error->>'type' = 'claim_failed'"))
	require.Zero(t, k.count("pawl.entity_claims"))
}

func TestFiftyCallersApplyOnePayment(t *testing.T) {
	k := open(t, nil)
	k.employ(&invoices.Billing{})
	k.employ(&invoices.Billing{})
	require.Equal(t, map[string]int{"complete": 1, "error": 49}, k.ends(k.submit("apply_payment", 50)))
	require.Equal(t, "paid", k.status())
	require.Equal(t, 1, k.count("payments"))
}

func TestTheTwoActionsExcludeEachOther(t *testing.T) {
	k := open(t, nil)
	var running, most atomic.Int32
	k.employ(&invoices.Billing{Compute: func(context.Context, int64) (int64, error) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		return 1, nil
	}})
	ends := k.ends(append(k.submit("regenerate_invoice", 10), k.submit("apply_payment", 10)...))
	require.Equal(t, map[string]int{"complete": 1, "error": 19}, ends)
	require.LessOrEqual(t, most.Load(), int32(1))
	require.Equal(t, 1, k.count("invoices where replaces is not null")+k.count("payments"))
}

func TestLatePaymentsWaitForEachOther(t *testing.T) {
	k := open(t, nil)
	k.exec("update invoices set status = 'overdue'")
	k.employ(&invoices.Billing{})
	require.Equal(t, map[string]int{"complete": 1, "error": 4}, k.ends(k.submit("apply_late_payment", 5)))
	require.Equal(t, []any{"paid", 1}, []any{k.status(), k.count("payments")})
}

func TestFailureReleasesTheInvoice(t *testing.T) {
	k := open(t, nil)
	var once atomic.Bool
	k.employ(&invoices.Billing{Compute: func(context.Context, int64) (int64, error) {
		if once.CompareAndSwap(false, true) {
			return 0, errors.New("the printer is on fire")
		}
		return 1, nil
	}})
	require.Equal(t, map[string]int{"complete": 1}, k.ends(k.submit("regenerate_invoice", 1)))
	require.Equal(t, "replaced", k.status())
}

func TestMigrationClaimsNothing(t *testing.T) {
	k := open(t, nil)
	k.employ(&invoices.Billing{})
	task, err := k.client.SubmitAndWait(t.Context(), client.Request{Template: "billing/regenerate_invoice", Requester: "migration",
		Input: map[string]int64{"invoice_id": k.invoice}})
	require.NoError(t, err)
	require.EqualValues(t, "complete", task.State)
	require.Equal(t, "sent", k.status())
}

func TestKilledWorkersInvoiceIsRecoveredOnce(t *testing.T) {
	k := open(t, nil)
	child := k.child()
	ids := k.submit("regenerate_invoice", 1)
	k.until("the child should act", func() bool { return k.count("actions") == 1 })
	require.NoError(t, child.Process.Kill()) // SIGKILL
	_ = child.Wait()

	k.employ(&invoices.Billing{Compute: func(ctx context.Context, invoice int64) (int64, error) {
		_, err := k.db.Exec(ctx, `insert into actions (invoice_id, who) values ($1, 'other')`, invoice)
		return 1, err
	}})
	var message int64
	k.one(&message, "select msg_id from pgmq.q_billing_queue")
	k.exec("update pgmq.q_billing_queue set vt = clock_timestamp()") // its lease is over
	k.until("the other worker should meet the message", func() bool {
		return k.count("pgmq.q_billing_queue where msg_id <> $1", message) == 1
	})
	require.Equal(t, "regenerating", k.status())
	require.Equal(t, invoices.Swept{}, k.sweep(), "the claim is younger than the limit")
	require.Equal(t, 1, k.count("actions"), "no second action before the limit")

	k.later("6 minutes")
	require.Equal(t, invoices.Swept{Reverted: 1}, k.sweep())
	require.Equal(t, invoices.Swept{}, k.sweep())
	require.Equal(t, map[string]int{"complete": 1}, k.ends(ids))
	require.Equal(t, 2, k.count("actions"))
	require.Equal(t, []any{"replaced", 1}, []any{k.status(), k.count("invoices where replaces is not null")})
}

func TestLongActionWithHeartbeatsIsNeverReverted(t *testing.T) {
	k := open(t, func(templates []byte) []byte {
		return bytes.Replace(templates, []byte("    handler: billing.regenerate\n"), []byte("    handler: billing.regenerate\n    lease: 5s\n"), 1)
	})
	k.exec("update pawl.entities set claim_limit = '500 milliseconds'")
	release := make(chan struct{})
	k.employ(&invoices.Billing{Compute: func(ctx context.Context, _ int64) (int64, error) {
		select {
		case <-release:
			return 1, nil
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}})
	ids := k.submit("regenerate_invoice", 1)
	k.until("the invoice should be claimed", func() bool { return k.status() == "regenerating" })
	k.until("ten limits and two leases should pass", func() bool {
		require.Equal(t, invoices.Swept{}, k.sweep())
		return k.count("pawl.entity_claims where clock_timestamp() - claimed_at > interval '5 s' and lease_until - claimed_at > interval '8 s'") == 1
	})
	close(release)
	require.Equal(t, map[string]int{"complete": 1}, k.ends(ids))
	require.Equal(t, "replaced", k.status())
}

func TestCancelInTheMiddleReleasesTheInvoice(t *testing.T) {
	k := open(t, func(templates []byte) []byte {
		return bytes.Replace(templates, []byte("    handler: billing.regenerate\n"), []byte("    handler: billing.regenerate\n    lease: 3s\n"), 1)
	})
	acting := make(chan struct{})
	k.employ(&invoices.Billing{Compute: func(ctx context.Context, _ int64) (int64, error) {
		close(acting)
		<-ctx.Done()
		return 0, context.Cause(ctx)
	}})
	ids := k.submit("regenerate_invoice", 1)
	select {
	case <-acting:
	case <-time.After(patience):
		require.FailNow(t, "nobody acts")
	}
	_, err := k.client.Cancel(t.Context(), ids[0], client.By{Actor: "ann", Reason: "the customer called"})
	require.NoError(t, err)
	k.until("the handler should hear of it and release the invoice", func() bool { return k.status() == "sent" })
	require.Equal(t, map[string]int{"cancelled": 1}, k.ends(ids))
	require.Zero(t, k.count("pawl.entity_claims"))
}

func TestNothingIsWrittenWhenSomebodyElseMovedTheInvoice(t *testing.T) {
	k := open(t, nil)
	k.employ(&invoices.Billing{Compute: func(ctx context.Context, invoice int64) (int64, error) {
		_, err := k.db.Exec(ctx, `update invoices set status = 'draft', version = version + 1 where invoice_id = $1`, invoice)
		return 1, err
	}})
	ids := k.submit("regenerate_invoice", 1)
	k.until("the invoice should be moved", func() bool { return k.status() == "draft" })
	k.until("the attempt should end, by the worker or by the janitor", func() bool {
		k.exec("update pawl.entity_claims set claimed_at = claimed_at - interval '1 hour', lease_until = claimed_at")
		k.sweep()
		return k.count("pawl.absorbed where reason = 'claim_lost' and task_id = $1", ids[0]) > 0
	})
	require.Equal(t, "draft", k.status())
	require.Zero(t, k.count("invoices where replaces is not null or deleted_at is not null"))
	require.Zero(t, k.count("pawl.entity_claims"))
}
