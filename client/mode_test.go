package client_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/workflow"
)

// Behind a transaction pooler nothing is prepared, and pgx encodes arguments without the server's word on their types.
func TestAClientNeedsNoPreparedStatements(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheDescribe} {
		t.Run(mode.String(), func(t *testing.T) {
			k := newKit(t)
			config := k.pool.Config()
			config.ConnConfig.DefaultQueryExecMode = mode
			pool, err := pgxpool.NewWithConfig(k.ctx, config)
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			k.pool = pool // the worker's, too
			k.client, err = client.New(client.Config{Pool: pool, Log: quiet})
			require.NoError(t, err)
			t.Cleanup(k.client.Close)
			k.apply(templates)
			k.work(nil)
			k.submitAndRead()
			k.operate()
		})
	}
}

// submitAndRead submits in every way and reads what became of it in every way.
func (k *kit) submitAndRead() {
	k.Helper()
	began := time.Now().Add(-time.Minute)
	request := client.Request{Template: "shop/add", Input: sum{20, 1}, Key: "k1", Tags: map[string]string{"shop": "it's"}}
	decided, err := k.client.SubmitAndDecide(k.ctx, request)
	require.NoError(k, err)
	n, err := client.Result[int](k.ctx, k.client, decided.TaskID)
	require.NoError(k, err)
	require.Equal(k, 42, n)
	request.OnDuplicate = messaging.Reject
	_, err = k.client.SubmitAndWait(k.ctx, request)
	var completed *client.TaskAlreadyCompletedError
	require.ErrorAs(k, err, &completed)
	many, err := k.client.SubmitMany(k.ctx, []client.Request{{Template: "shop/add", Input: sum{}}, {Template: "shop/add", Input: sum{}, Key: "k2"}})
	require.NoError(k, err)
	in, err := k.client.SubmitTx(k.ctx, k.pool, client.Request{Template: "shop/add", Input: sum{}})
	require.NoError(k, err)
	for _, id := range append(many, in) {
		task, err := k.client.Wait(k.ctx, id)
		require.NoError(k, err)
		require.Equal(k, "completed", task.Status)
	}
	found, err := k.client.List(k.ctx, client.Filter{Template: "shop/add@1", Key: "k1", States: []workflow.TaskState{"complete", "error"},
		Tags: map[string]string{"shop": "it's"}, Since: began, Before: uuid.Max})
	require.NoError(k, err)
	require.Len(k, found, 1)
	require.Equal(k, decided.TaskID, found[0].ID)
	steps, err := k.client.Steps(k.ctx, decided.TaskID)
	require.NoError(k, err)
	require.Len(k, steps, 2)
	history, err := k.client.History(k.ctx, decided.TaskID)
	require.NoError(k, err)
	require.NotEmpty(k, history)
}

// operate gives commands with arguments of every type.
func (k *kit) operate() {
	k.Helper()
	_, err := k.client.ConfigureQueue(k.ctx, "shop_queue", client.QueueSettings{RateLimit: ptr("100/sec"), Paused: ptr(true)}, anna)
	require.NoError(k, err)
	queues, err := k.client.Queues(k.ctx)
	require.NoError(k, err)
	require.True(k, queues[0].Paused)
	task, err := k.client.SubmitAndDecide(k.ctx, client.Request{Template: "shop/add", Input: sum{}})
	require.NoError(k, err)
	_, err = k.client.Explain(k.ctx, task.TaskID)
	require.NoError(k, err)
	_, err = k.client.CompleteStep(k.ctx, client.StepID{TaskID: task.TaskID, Step: "add"}, map[string]int{"a": 1}, anna)
	require.NoError(k, err)
	_, err = k.client.ResolveTask(k.ctx, task.TaskID, nil, anna)
	require.NoError(k, err)
	which := client.DeadLetters{Filter: map[string]any{"queue": "shop_queue"}, Spread: 1500 * time.Millisecond}
	_, err = k.client.RedriveDeadLetters(k.ctx, which, anna)
	require.NoError(k, err)
}

// An error that arises on this side comes again: it is no outage to be waited out.
func TestWhatCannotBeEncodedEndsWaiting(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	k.apply(free)
	c := k.hooked(func(_ context.Context, conn *pgx.Conn) error {
		conn.TypeMap().RegisterType(&pgtype.Type{Name: "_text", OID: pgtype.TextArrayOID, Codec: pgtype.BoolCodec{}})
		return nil
	})
	_, err := c.Wait(k.ctx, messaging.NewRequestID())
	require.ErrorContains(t, err, "encode")
	_, err = c.Submit(k.ctx, plain)
	require.ErrorContains(t, err, "encode")
}
