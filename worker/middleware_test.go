package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/worker"
	"github.com/pawl-dev/pawl/worker/workertest"
)

// wrapped is a worker that needs no database.
func wrapped(t *testing.T, middleware ...worker.Middleware) *worker.Worker {
	t.Helper()
	w, err := worker.New(worker.Config{DatabaseURL: "postgres://", Queues: []worker.Queue{{Name: "a"}}, Middleware: middleware})
	require.NoError(t, err)
	return w
}

func TestTheFirstMiddlewareIsTheOutermost(t *testing.T) {
	t.Parallel()
	var order []string
	note := func(name string) worker.Middleware {
		return func(next worker.HandlerFunc) worker.HandlerFunc {
			return func(ctx context.Context, call worker.Call) (any, error) {
				order = append(order, name+" "+call.Handler)
				out, err := next(ctx, call)
				order = append(order, name+" ended")
				return out, err
			}
		}
	}
	w := wrapped(t, note("a"), note("b"))
	worker.Handle(w, "h", func(_ context.Context, step worker.Step[int]) (int, error) {
		order = append(order, step.Name)
		return step.Input + 1, nil
	})
	end := workertest.Deliver(t.Context(), w, "h", workertest.Message{Input: 1, Step: "s"})
	require.Equal(t, `2`, string(end.Result))
	require.Equal(t, []string{"a h", "b h", "s", "b ended", "a ended"}, order)
}

func TestMiddlewareDecidesWhatTheStepsEndIs(t *testing.T) {
	t.Parallel()
	type key struct{}
	refusal := errors.New("no such tenant")
	w := wrapped(t, func(next worker.HandlerFunc) worker.HandlerFunc {
		return func(ctx context.Context, call worker.Call) (out any, err error) {
			defer func() {
				if recover() != nil {
					err = errors.New("recovered")
				}
			}()
			var dependency string
			if call.Dependency("tenant", &dependency) != nil {
				return nil, worker.Rejected(refusal)
			}
			out, err = next(context.WithValue(ctx, key{}, dependency), call)
			return map[string]any{"was": out}, err
		}
	})
	worker.Handle(w, "h", func(ctx context.Context, step worker.Step[string]) (string, error) {
		if step.Input == "panic" {
			panic("no")
		}
		return ctx.Value(key{}).(string), nil
	})
	end := workertest.Deliver(t.Context(), w, "h", workertest.Message{})
	require.Equal(t, messaging.Rejected, end.Status)
	require.ErrorIs(t, end.Err, refusal)
	tenant := map[string]any{"tenant": "t1"}
	end = workertest.Deliver(t.Context(), w, "h", workertest.Message{Input: "x", Dependencies: tenant})
	require.JSONEq(t, `{"was": "t1"}`, string(end.Result))
	end = workertest.Deliver(t.Context(), w, "h", workertest.Message{Input: "panic", Dependencies: tenant})
	require.Equal(t, "recovered", end.Error.Message)
	end = workertest.Deliver(t.Context(), w, "h", workertest.Message{Input: 12, Dependencies: tenant})
	require.Equal(t, "invalid_input", end.Error.Type, "it is what next returned")
}

// A transaction around every handler: the middleware completes the step with it.
func TestMiddlewareMayCompleteTheStepInATransaction(t *testing.T) {
	k := newKit(t)
	_, err := k.pool.Exec(t.Context(), `create table ledger (n int)`)
	require.NoError(t, err)
	k.queue("tx_queue")
	type key struct{}
	w := k.worker(worker.Config{Middleware: []worker.Middleware{func(next worker.HandlerFunc) worker.HandlerFunc {
		return func(ctx context.Context, call worker.Call) (any, error) {
			return nil, pgx.BeginFunc(ctx, k.pool, func(tx pgx.Tx) error {
				out, err := next(context.WithValue(ctx, key{}, tx), call)
				if err != nil {
					return err
				}
				return call.CompleteTx(ctx, tx, out)
			})
		}
	}}}, "tx_queue")
	worker.Handle(w, "book", func(ctx context.Context, step worker.Step[int]) (int, error) {
		if _, err := ctx.Value(key{}).(pgx.Tx).Exec(ctx, `insert into ledger values ($1)`, step.Input); err != nil {
			return 0, err
		}
		if step.Input < 0 {
			return 0, errors.New("negative")
		}
		return 2 * step.Input, nil
	})
	k.start(w)
	tasks := k.submit("book", "tx_queue", 21, -1)
	require.Equal(t, `42`, k.await(tasks[0], "complete").Result)
	require.Equal(t, "negative", k.await(tasks[1], "waiting_for_retry").Error.Message)
	require.Equal(t, 1, k.count(`select count(*) from ledger`))
}

func TestMiddlewareIsChecked(t *testing.T) {
	t.Parallel()
	_, err := worker.New(worker.Config{DatabaseURL: "postgres://", Queues: []worker.Queue{{Name: "a"}}, Middleware: []worker.Middleware{nil}})
	require.ErrorContains(t, err, "one of Middleware is nil")
	handle := func(context.Context, worker.Step[any]) (any, error) { return nil, nil }
	w := wrapped(t, func(worker.HandlerFunc) worker.HandlerFunc { return nil })
	require.Panics(t, func() { worker.Handle(w, "h", handle) })
	w = wrapped(t, func(next worker.HandlerFunc) worker.HandlerFunc {
		return func(ctx context.Context, _ worker.Call) (any, error) { return next(ctx, worker.Call{}) }
	})
	worker.Handle(w, "h", handle)
	require.ErrorContains(t, workertest.Deliver(t.Context(), w, "h", workertest.Message{}).Err, "no worker has made this step")
}

func TestAStepThatNoWorkerMadeSaysSo(t *testing.T) {
	t.Parallel()
	var step worker.Step[any]
	const said = "a test makes one with package workertest"
	require.ErrorContains(t, step.Dependency("a", nil), said)
	require.ErrorContains(t, step.Config(nil), said)
	require.ErrorContains(t, step.CompleteTx(t.Context(), nil, nil), said)
	require.Empty(t, step.Dependencies())
}

func TestTheLoggerNamesTheStep(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	w, err := worker.New(worker.Config{DatabaseURL: "postgres://", Queues: []worker.Queue{{Name: "a"}}, Log: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	worker.Handle(w, "h", func(ctx context.Context, _ worker.Step[any]) (any, error) {
		worker.Logger(ctx).Info("charging")
		return nil, nil
	})
	workertest.Deliver(t.Context(), w, "h", workertest.Message{Step: "charge", Attempt: 2})
	require.Regexp(t, `msg=charging .*task_id=[0-9a-f-]+ step=charge attempt=2 delivery=1 handler=h`, log.String())
	require.Equal(t, slog.Default(), worker.Logger(t.Context()))
}
