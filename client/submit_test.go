package client_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/messaging"
)

// Requests for shop/free are plain: SQL alone can judge them.
const free = `
namespace: shop
name: free
version: "1"
steps:
  - {name: add, handler: add, queue: shop_queue}
  - {name: double, handler: double, queue: shop_queue, needs: [add]}
`

var plain = client.Request{Template: "shop/free", Input: sum{20, 1}}

// counted tells how many tasks and how many requests there are.
func (k *kit) counted() (counts [2]int) {
	k.Helper()
	require.NoError(k, k.pool.QueryRow(k.ctx, `select (select count(*) from pawl.tasks),
		(select count(*) from pgmq.q_orchestration_task_requests)`).Scan(&counts[0], &counts[1]))
	return counts
}

func TestAPlainRequestIsATaskWithoutAnyOrchestrator(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	id, err := k.client.Submit(trace.ContextWithSpanContext(k.ctx, span), client.Request{Template: "shop/free", Input: sum{1, 2},
		CorrelationID: "c1", Requester: "anna", Tags: map[string]string{"shop": "<berlin>"}})
	require.NoError(t, err)
	task, err := k.client.Get(k.ctx, id)
	require.NoError(t, err)
	require.Equal(t, []any{"running", "c1", "anna", map[string]string{"shop": "<berlin>"}}, []any{task.Status, task.CorrelationID, task.Requester, task.Tags})
	require.Equal(t, [2]int{1, 0}, k.counted())
	var traceparent string
	require.NoError(t, k.pool.QueryRow(k.ctx, `select headers->>'traceparent' from pgmq.q_shop_queue`).Scan(&traceparent))
	require.Equal(t, "00-01000000000000000000000000000000-0200000000000000-01", traceparent)

	ids, err := k.client.SubmitMany(k.ctx, []client.Request{plain, plain, plain})
	require.NoError(t, err)
	require.Equal(t, [2]int{4, 0}, k.counted())
	for _, id := range ids {
		_, err := k.client.Get(k.ctx, id)
		require.NoError(t, err)
	}
	keyed := plain
	keyed.Key = "k"
	_, err = k.client.SubmitMany(k.ctx, []client.Request{plain, keyed})
	require.NoError(t, err)
	require.Equal(t, [2]int{4, 2}, k.counted(), "one that is not plain takes all to the queue")
	none, err := k.client.SubmitMany(k.ctx, nil)
	require.NoError(t, err)
	require.Empty(t, none)

	_, err = k.client.Enqueue(k.ctx, "refuse", sum{})
	require.NoError(t, err)
	require.Equal(t, [2]int{4, 3}, k.counted(), "a new handler is for an orchestrator")
	_, err = k.pool.Exec(k.ctx, "select pawl.adhoc_template('default', 'refuse', null)")
	require.NoError(t, err)
	_, err = k.client.Enqueue(k.ctx, "refuse", sum{})
	require.NoError(t, err)
	require.Equal(t, [2]int{5, 3}, k.counted())
}

func TestADecisionAboutAPlainRequestIsThereAtOnce(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t) // so that nobody else could decide
	k.apply(free)
	decision, err := k.client.SubmitAndDecide(k.ctx, plain)
	require.NoError(t, err)
	require.Equal(t, client.Decision{RequestID: decision.TaskID, TaskID: decision.TaskID}, decision)
	require.Equal(t, uuid.Version(7), decision.TaskID.Version())
	own := plain
	own.ID = messaging.NewRequestID()
	decision, err = k.client.SubmitAndDecide(k.ctx, own)
	require.NoError(t, err)
	require.Equal(t, client.Decision{RequestID: own.ID, TaskID: own.ID}, decision)
	require.Equal(t, [2]int{2, 0}, k.counted())
}

func TestAPlainRequestIsWorkedAndWaitedFor(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	k.work(nil)
	for _, id := range []uuid.UUID{uuid.Nil, messaging.NewRequestID()} {
		request := plain
		request.ID = id
		task, err := k.client.SubmitAndWait(k.ctx, request)
		require.NoError(t, err)
		var n int
		require.NoError(t, task.Decode(&n))
		require.Equal(t, 42, n)
	}
}

func TestAPlainRequestThatIsRepeatedMeetsItsTask(t *testing.T) {
	k := newKit(t)
	k.apply(free)
	request := plain
	request.ID = messaging.NewRequestID()
	for n := range 3 {
		decision, err := k.client.SubmitAndDecide(k.ctx, request)
		require.NoError(t, err)
		require.Equal(t, client.Decision{RequestID: request.ID, TaskID: request.ID, Attached: n > 0}, decision)
	}
	request.Input = sum{5, 5}
	_, err := k.client.SubmitAndDecide(k.ctx, request)
	var mismatch *client.TaskInputMismatchError
	require.ErrorAs(t, err, &mismatch)
	require.Equal(t, request.ID, mismatch.TaskID)
	require.Equal(t, [2]int{1, 0}, k.counted())
}

func TestARequestInATransactionIsAMessage(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	require.NoError(t, pgx.BeginFunc(k.ctx, k.pool, func(tx pgx.Tx) error {
		_, err := k.client.SubmitTx(k.ctx, tx, plain)
		return err
	}))
	_, err := k.client.SubmitTx(k.ctx, k.pool, plain)
	require.NoError(t, err)
	require.Equal(t, [2]int{0, 2}, k.counted())
}

// as makes a client whose role was granted no more than grants say ($ stands for its name).
func (k *kit) as(grants ...string) *client.Client {
	k.Helper()
	name := fmt.Sprintf("pawl_test_%x", rand.Uint64())
	for _, sql := range append([]string{"create role $ login password '$'"}, grants...) {
		_, err := k.pool.Exec(k.ctx, strings.ReplaceAll(sql, "$", name))
		require.NoError(k, err, sql)
	}
	config := k.pool.Config()
	config.ConnConfig.User, config.ConnConfig.Password, config.MaxConns = name, name, 2
	pool, err := pgxpool.NewWithConfig(k.ctx, config)
	require.NoError(k, err)
	c, err := client.New(client.Config{Pool: pool, Log: quiet})
	require.NoError(k, err)
	k.Cleanup(func() {
		c.Close()
		pool.Close()
		_, err := k.pool.Exec(context.Background(), strings.ReplaceAll("drop owned by $; drop role $", "$", name))
		require.NoError(k, err)
	})
	return c
}

func TestARoleThatMayOnlySendSends(t *testing.T) {
	const usage, insert = "grant usage on schema pgmq to $", "grant insert, select (msg_id) on pgmq.q_orchestration_task_requests to $"
	for name, c := range map[string]struct {
		prepare string
		grants  []string
		task    bool
	}{
		"with the right to insert":        {grants: []string{usage, insert}},
		"that may look at Pawl's schema":  {grants: []string{usage, insert, "grant usage on schema pawl to $"}},
		"beside the roles of the project": {prepare: "select pawl.install_roles()", grants: []string{usage, insert, "grant usage on schema pawl to $"}},
		"on an older database": {prepare: "drop function pawl.submit_requests",
			grants: []string{usage, insert, "grant usage on schema pawl to $"}},
		"unless it is the producers'": {prepare: "select pawl.install_roles()", grants: []string{"grant pawl_producer to $"}, task: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := withoutOrchestrator(t)
			k.apply(free)
			if c.prepare != "" {
				_, err := k.pool.Exec(k.ctx, c.prepare)
				require.NoError(t, err)
			}
			sender := k.as(c.grants...)
			id, err := sender.Submit(k.ctx, plain)
			require.NoError(t, err)
			require.NotEqual(t, uuid.Nil, id)
			ids, err := sender.SubmitMany(k.ctx, []client.Request{plain, plain})
			require.NoError(t, err)
			want := [2]int{0, 3}
			if c.task {
				want = [2]int{3, 0}
			}
			require.Equal(t, want, k.counted())
			k.orchestrate()
			for _, id := range append(ids, id) {
				require.Eventually(t, func() bool { _, err := k.client.Get(k.ctx, id); return err == nil }, patience, 10*time.Millisecond)
			}
		})
	}
}

func TestARoleThatMayNotEvenSendIsTold(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	_, err := k.as().Submit(k.ctx, plain)
	require.ErrorContains(t, err, "permission denied")
	for field, request := range map[string]client.Request{
		"requester": {Requester: "\xff"}, "correlation_id": {CorrelationID: "\xff"}, "tags": {Tags: map[string]string{"shop": "\xff"}},
	} {
		request.Template = plain.Template
		_, err := k.client.Submit(k.ctx, request)
		require.ErrorContains(t, err, `field "`+field+`": is not UTF-8`)
	}
	require.Equal(t, [2]int{0, 0}, k.counted())
}

// Binary keys that differ would otherwise become one key, and the second request the first one's task.
func TestATextThatIsNoUTF8IsRefused(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	for _, key := range []string{"\x80", "\x81"} {
		request := plain
		request.Key = key
		_, err := k.client.Submit(k.ctx, request)
		var invalid *client.InvalidRequestError
		require.ErrorAs(t, err, &invalid)
		require.ErrorContains(t, err, `field "key": is not UTF-8`)
	}
	require.Equal(t, [2]int{0, 0}, k.counted())
}
