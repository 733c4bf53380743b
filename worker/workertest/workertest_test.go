package workertest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/worker"
	"github.com/pawl-dev/pawl/worker/workertest"
)

type order struct {
	ID    string `json:"id"`
	Cents int    `json:"cents"`
}

func TestAHandlerGetsWhatTheMessageSays(t *testing.T) {
	t.Parallel()
	task := uuid.New()
	var seen worker.Step[order]
	out, end := workertest.Run(t.Context(), func(_ context.Context, step worker.Step[order]) (order, error) {
		seen = step
		var price, config struct{ Cents int }
		err := errors.Join(step.Dependency("price", &price), step.Config(&config))
		return order{ID: step.Input.ID, Cents: price.Cents + config.Cents}, err
	}, workertest.Message{Input: order{ID: "o-1"}, Dependencies: map[string]any{"price": map[string]int{"cents": 40}},
		Config: map[string]int{"cents": 2}, Attempt: 2, Delivery: 3, TaskID: task, Step: "charge", Index: 4, CorrelationID: "c"})
	require.Equal(t, messaging.Complete, end.Status)
	require.NoError(t, end.Err)
	require.Equal(t, order{ID: "o-1", Cents: 42}, out)
	require.JSONEq(t, `{"id": "o-1", "cents": 42}`, string(end.Result))
	require.Equal(t, task, seen.TaskID)
	require.Equal(t, []any{"charge", 4, 2, 3, "test", "test_queue", task.String() + "/charge/4", "c"}, []any{seen.Name, seen.Index,
		seen.Attempt, seen.Delivery, seen.Handler, seen.Queue, seen.Token, seen.CorrelationID})
	require.Len(t, seen.Dependencies(), 1)
}

func TestErrorsBecomeOutcomes(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		err    error
		status messaging.ResultStatus
		want   messaging.StepError
	}{
		"plain":     {boom, messaging.Failed, messaging.StepError{Type: "error", Message: "boom", Retryable: true}},
		"permanent": {worker.Permanent(boom), messaging.Failed, messaging.StepError{Type: "error", Message: "boom"}},
		"later":     {worker.RetryAfter(boom, time.Minute), messaging.Failed, messaging.StepError{Type: "error", Message: "boom", Retryable: true, RetryAfter: 60}},
		"rejected":  {worker.Rejected(worker.Error{Type: "fraud", Err: boom}), messaging.Rejected, messaging.StepError{Type: "fraud", Message: "boom"}},
	} {
		out, end := workertest.Run(t.Context(), func(context.Context, worker.Step[any]) (int, error) { return 7, c.err }, workertest.Message{})
		require.Equal(t, c.status, end.Status, name)
		require.Equal(t, &c.want, end.Error, name)
		require.ErrorIs(t, end.Err, boom, name)
		require.Zero(t, out, name)
	}
	_, end := workertest.Run(t.Context(), func(context.Context, worker.Step[any]) (any, error) { panic("no") }, workertest.Message{})
	require.Equal(t, "panic", end.Error.Type)
	_, end = workertest.Run(t.Context(), func(context.Context, worker.Step[order]) (any, error) { return nil, nil },
		workertest.Message{Input: map[string]any{"id": 12}})
	require.Equal(t, messaging.StepError{Type: "invalid_input", Message: `reading input: field "id" is a JSON number, and the handler wants string`}, *end.Error)
	_, end = workertest.Run(t.Context(), func(context.Context, worker.Step[any]) (string, error) { return "\x00", nil }, workertest.Message{})
	require.Equal(t, "invalid_result", end.Error.Type)
}

func TestTheContextEndsAsInAWorker(t *testing.T) {
	t.Parallel()
	waits := func(ctx context.Context, _ worker.Step[any]) (any, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	_, end := workertest.Run(t.Context(), waits, workertest.Message{Timeout: time.Millisecond})
	require.Equal(t, "timeout", end.Error.Type)
	ctx, cancel := context.WithCancelCause(t.Context())
	_, end = workertest.Run(ctx, func(ctx context.Context, step worker.Step[any]) (any, error) {
		cancel(worker.ErrStopping)
		return waits(ctx, step)
	}, workertest.Message{})
	require.Equal(t, workertest.Outcome{Err: worker.ErrStopping}, end, "given back")
}

func TestCompletionInATransactionIsTold(t *testing.T) {
	t.Parallel()
	out, end := workertest.Run(t.Context(), func(ctx context.Context, step worker.Step[any]) (any, error) {
		return "not used", step.CompleteTx(ctx, nil, 42)
	}, workertest.Message{})
	require.True(t, end.Completed)
	require.Equal(t, messaging.Complete, end.Status)
	require.EqualValues(t, 42, out)
	_, end = workertest.Run(t.Context(), func(ctx context.Context, step worker.Step[any]) (any, error) {
		return nil, errors.Join(step.CompleteTx(ctx, nil, 42), errors.New("rolled back"))
	}, workertest.Message{})
	require.False(t, end.Completed)
	require.Equal(t, messaging.Failed, end.Status)
	require.Empty(t, end.Result)
}

func TestMisuseIsSaid(t *testing.T) {
	t.Parallel()
	handle := func(context.Context, worker.Step[any]) (any, error) { return nil, nil }
	w, err := worker.New(worker.Config{DatabaseURL: "postgres://", Queues: []worker.Queue{{Name: "a"}}})
	require.NoError(t, err)
	worker.Handle(w, "charge", handle)
	require.PanicsWithValue(t, `workertest: the worker has no handler "chrge"; did you mean "charge"?`, func() {
		workertest.Deliver(t.Context(), w, "chrge", workertest.Message{})
	})
	require.Panics(t, func() { workertest.Run(t.Context(), handle, workertest.Message{Input: func() {}}) })
}
