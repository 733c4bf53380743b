package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/workflow"
)

func TestSubmitAndWaitBringsTheResult(t *testing.T) {
	k := newKit(t)
	applied := k.apply(templates)
	require.True(t, applied[0].Created)
	require.Equal(t, []string{"shop_queue"}, applied[0].QueuesCreated)
	require.False(t, k.apply(templates)[0].Created)
	k.work(nil)
	task, err := k.client.SubmitAndWait(k.ctx, client.Request{Template: "shop/add", Input: sum{20, 1}, Key: "k1", Requester: "anna",
		CorrelationID: "c1", Tags: map[string]string{"shop": "<berlin>"}})
	require.NoError(t, err)
	var n int
	require.NoError(t, task.Decode(&n))
	require.Equal(t, 42, n)
	require.Equal(t, "completed", task.Status)
	require.True(t, task.Final())
	require.Equal(t, map[string]string{"shop": "<berlin>"}, task.Tags)
	require.Equal(t, "c1", task.CorrelationID)
	require.Equal(t, "anna", task.Requester)
	require.Equal(t, uuid.Version(7), task.ID.Version())

	steps, err := k.client.Steps(k.ctx, task.ID)
	require.NoError(t, err)
	require.Len(t, steps, 2)
	require.Equal(t, "add", steps[0].Name)
	require.Equal(t, workflow.StepComplete, steps[1].State)
	require.JSONEq(t, `42`, string(steps[1].Result))
	history, err := k.client.History(k.ctx, task.ID)
	require.NoError(t, err)
	require.Equal(t, "complete", history[len(history)-1].To)
	require.Empty(t, history[len(history)-1].Step)
	revisions := map[string]int{}
	for _, transition := range history {
		revisions[transition.Step]++
		require.Equal(t, revisions[transition.Step], transition.Revision, "revisions are dense")
	}
	got, err := k.client.Get(k.ctx, task.ID)
	require.NoError(t, err)
	require.Equal(t, task, got)
}

func TestManyWaitersGetTheirOwnResults(t *testing.T) {
	k := newKit(t)
	k.apply(templates)
	k.work(nil)
	requests := make([]client.Request, 100)
	for i := range requests {
		requests[i] = client.Request{Template: "shop/add", Input: sum{A: i}}
	}
	ids, err := k.client.SubmitMany(k.ctx, requests)
	require.NoError(t, err)
	var waiting sync.WaitGroup
	for i, id := range ids {
		waiting.Go(func() {
			task, err := k.client.Wait(k.ctx, id)
			var n int
			if err == nil {
				err = task.Decode(&n)
			}
			if err != nil || n != 2*i {
				t.Errorf("task %d: %d, %v", i, n, err)
			}
		})
	}
	waiting.Wait()
	list, err := k.client.List(k.ctx, client.Filter{Template: "add", Limit: 30})
	require.NoError(t, err)
	require.Len(t, list, 30)
	rest, err := k.client.List(k.ctx, client.Filter{Namespace: "shop", States: []workflow.TaskState{"complete"}, Before: list[29].ID, Limit: 1000})
	require.NoError(t, err)
	require.Len(t, rest, 70)
	require.Negative(t, strings.Compare(rest[0].ID.String(), list[29].ID.String()))
	open, err := k.client.List(k.ctx, client.Filter{Open: true})
	require.NoError(t, err)
	require.Empty(t, open)
}

func TestDuplicatesAttachOrAreRefused(t *testing.T) {
	k := newKit(t)
	k.apply(templates)
	gate := make(chan struct{})
	k.work(gate)
	first := client.Request{Template: "shop/add", Input: sum{1, 2}, Key: "order-1"}
	id, err := k.client.Submit(k.ctx, first)
	require.NoError(t, err)

	reject := first
	reject.OnDuplicate = messaging.Reject
	_, err = k.client.SubmitAndWait(k.ctx, reject)
	var exists *client.TaskAlreadyExistsError
	require.ErrorAs(t, err, &exists)
	require.Equal(t, id, exists.TaskID)
	require.Equal(t, "running", exists.Status)
	require.ErrorContains(t, err, "Task with ID 'order-1' is already pending/running")

	other := reject
	other.Input = sum{3, 4}
	_, err = k.client.SubmitAndWait(k.ctx, other)
	var mismatch *client.TaskInputMismatchError
	require.ErrorAs(t, err, &mismatch)
	require.Equal(t, id, mismatch.TaskID)

	attached, err := k.client.Submit(k.ctx, first)
	require.NoError(t, err)
	require.NotEqual(t, id, attached)
	close(gate)
	task, err := k.client.Wait(k.ctx, attached)
	require.NoError(t, err)
	require.Equal(t, id, task.ID)
	var n int
	require.NoError(t, task.Decode(&n))
	require.Equal(t, 6, n)

	_, err = k.client.SubmitAndWait(k.ctx, reject)
	var completed *client.TaskAlreadyCompletedError
	require.ErrorAs(t, err, &completed)
	require.Equal(t, id, completed.TaskID)
	require.JSONEq(t, `6`, string(completed.Result))
	require.WithinDuration(t, task.FinalizedAt, completed.CompletedAt, 0)
}

func TestARequestsIdMakesRepeatingHarmless(t *testing.T) {
	k := newKit(t)
	k.apply(templates)
	k.work(nil)
	request := client.Request{ID: messaging.NewRequestID(), Template: "shop/add", Input: sum{1, 2}}
	for range 2 {
		task, err := k.client.SubmitAndWait(k.ctx, request)
		require.NoError(t, err)
		require.Equal(t, request.ID, task.ID)
	}
	request.Input = sum{5, 5}
	_, err := k.client.SubmitAndWait(k.ctx, request)
	var mismatch *client.TaskInputMismatchError
	require.ErrorAs(t, err, &mismatch)
	require.Equal(t, request.ID, mismatch.TaskID)
	list, err := k.client.List(k.ctx, client.Filter{})
	require.NoError(t, err)
	require.Len(t, list, 1)
}

func TestADecisionSaysWhichTaskItIs(t *testing.T) {
	k := newKit(t)
	k.apply(templates)
	request := client.Request{ID: messaging.NewRequestID(), Template: "shop/add", Input: sum{1, 2}, Key: "order-1"}
	first, err := k.client.SubmitAndDecide(k.ctx, request)
	require.NoError(t, err)
	require.Equal(t, client.Decision{RequestID: request.ID, TaskID: request.ID}, first)
	again, err := k.client.SubmitAndDecide(k.ctx, request)
	require.NoError(t, err)
	require.Equal(t, client.Decision{RequestID: request.ID, TaskID: request.ID, Attached: true}, again)
	request.ID = messaging.NewRequestID()
	other, err := k.client.SubmitAndDecide(k.ctx, request)
	require.NoError(t, err)
	require.Equal(t, client.Decision{RequestID: request.ID, TaskID: first.TaskID, Attached: true}, other)

	request.OnDuplicate = messaging.Reject
	_, err = k.client.SubmitAndDecide(k.ctx, request)
	var exists *client.TaskAlreadyExistsError
	require.ErrorAs(t, err, &exists)
	_, err = k.client.SubmitAndDecide(k.ctx, client.Request{Template: "shop/none"})
	var invalid *client.InvalidRequestError
	require.ErrorAs(t, err, &invalid)
}

func TestADecisionThatDoesNotComeLeavesARequestThatIsSent(t *testing.T) {
	k := withoutOrchestrator(t)
	k.apply(templates)
	ctx, cancel := context.WithTimeout(k.ctx, 50*time.Millisecond)
	defer cancel()
	d, err := k.client.SubmitAndDecide(ctx, client.Request{Template: "shop/add", Input: sum{1, 2}})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	if d.RequestID != uuid.Nil { // else there was no time to send it
		require.Equal(t, uuid.Nil, d.TaskID)
		require.NotErrorIs(t, err, client.ErrNotFound)
	}
}

func TestInvalidRequestsAreTypedErrors(t *testing.T) {
	k := newKit(t)
	k.apply(templates)
	for name, request := range map[string]client.Request{
		"here: nothing named":   {},
		"here: bad queue":       {Handler: "h", Queue: "Shop"},
		"here: zero byte":       {Handler: "h", Input: "a\x00b"},
		"here: half surrogate":  {Handler: "h", Input: json.RawMessage(`"\ud800"`)},
		"here: no JSON":         {Handler: "h", Input: json.RawMessage(`{"a":`)},
		"here: no JSON either":  {Handler: "h", Input: func() {}},
		"here: bytes":           {Handler: "h", Input: []byte(`{}`)},
		"here: too long":        {Handler: "h", Input: strings.Repeat("x", 1<<20)},
		"there: no template":    {Template: "shop/ad", Input: sum{}},
		"there: not the schema": {Template: "shop/add", Input: map[string]any{"a": "one", "b": 2}},
	} {
		_, err := k.client.SubmitAndWait(k.ctx, request)
		var invalid *client.InvalidRequestError
		require.ErrorAs(t, err, &invalid, name)
		require.NotContains(t, err.Error(), `"one"`)
		switch {
		case strings.HasSuffix(name, "bytes"):
			require.Contains(t, invalid.Message, "json.RawMessage")
		case strings.HasSuffix(name, "template"):
			require.Equal(t, "UnknownTemplate", invalid.Kind)
			require.Contains(t, invalid.Message, "shop/add")
		case strings.HasSuffix(name, "schema"):
			require.Equal(t, "InvalidInput", invalid.Kind)
		default:
			require.Equal(t, "InvalidRequest", invalid.Kind)
		}
	}
	_, err := k.client.SubmitAndWait(k.ctx, client.Request{Template: "shop/keyed"})
	var required *client.KeyRequiredError
	require.ErrorAs(t, err, &required)
	_, err = k.client.SubmitMany(k.ctx, []client.Request{{Handler: "h"}, {}})
	require.ErrorContains(t, err, "request 2 of 2")
}

func TestSubmitTxFollowsTheCallersTransaction(t *testing.T) {
	k := newKit(t)
	k.apply(templates)
	k.work(nil)
	tx, err := k.pool.Begin(k.ctx)
	require.NoError(t, err)
	lost, err := k.client.SubmitTx(k.ctx, tx, client.Request{Template: "shop/add", Input: sum{1, 1}})
	require.NoError(t, err)
	require.NoError(t, tx.Rollback(k.ctx))
	var id uuid.UUID
	require.NoError(t, pgx.BeginFunc(k.ctx, k.pool, func(tx pgx.Tx) error {
		id, err = k.client.SubmitTx(k.ctx, tx, client.Request{Template: "shop/add", Input: sum{1, 2}})
		return err
	}))
	_, err = k.client.Wait(k.ctx, id)
	require.NoError(t, err)
	_, err = k.client.Get(k.ctx, lost)
	require.ErrorIs(t, err, client.ErrNotFound)
	_, err = k.client.Steps(k.ctx, lost)
	require.ErrorIs(t, err, client.ErrNotFound)
	_, err = k.client.History(k.ctx, lost)
	require.ErrorIs(t, err, client.ErrNotFound)
}

func TestARequestCarriesTheCallersTrace(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	_, err := k.client.Submit(trace.ContextWithSpanContext(k.ctx, span), client.Request{Handler: "h"})
	require.NoError(t, err)
	var traceparent string
	require.NoError(t, k.pool.QueryRow(k.ctx, `select headers->>'traceparent' from pgmq.q_orchestration_task_requests`).Scan(&traceparent))
	require.Equal(t, "00-01000000000000000000000000000000-0200000000000000-01", traceparent)
}

func TestASubmitIsASpanOfItsTasksTrace(t *testing.T) {
	t.Parallel()
	k := withoutOrchestrator(t)
	spans := tracetest.NewInMemoryExporter()
	c, err := client.New(client.Config{Pool: k.pool, NoListen: true, Tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.SubmitMany(k.ctx, []client.Request{{Handler: "h"}, {Handler: "h"}})
	require.NoError(t, err)
	_, err = c.Submit(k.ctx, client.Request{})
	require.Error(t, err)
	require.Len(t, spans.GetSpans(), 2)
	submitted, refused := spans.GetSpans()[0], spans.GetSpans()[1]
	require.Equal(t, trace.SpanKindProducer, submitted.SpanKind)
	require.Equal(t, codes.Unset, submitted.Status.Code)
	require.Equal(t, codes.Error, refused.Status.Code)
	var carried int
	require.NoError(t, k.pool.QueryRow(k.ctx, `select count(*) from pgmq.q_orchestration_task_requests where headers->>'traceparent' = $1`,
		fmt.Sprintf("00-%s-%s-01", submitted.SpanContext.TraceID(), submitted.SpanContext.SpanID())).Scan(&carried))
	require.Equal(t, 2, carried)
}

func TestAFailedTaskIsATypedError(t *testing.T) {
	k := newKit(t)
	_, err := k.client.ConfigureQueue(k.ctx, "shop_queue", client.QueueSettings{}, client.By{Actor: "anna", Reason: "needed"})
	require.NoError(t, err)
	k.work(nil)
	task, err := k.client.SubmitAndWait(k.ctx, client.Request{Handler: "refuse", Queue: "shop_queue", Input: sum{}})
	require.NoError(t, err)
	var failed *client.TaskFailedError
	require.ErrorAs(t, task.Decode(nil), &failed)
	require.Equal(t, "failed", failed.Status)
	require.Equal(t, "run", failed.Step)
	require.Equal(t, "fraud", failed.Cause.Type)
}
