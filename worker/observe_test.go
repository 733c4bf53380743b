package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/worker"
)

const secret = "4111-1111"

func TestNoPayloadIsInLogsMetricsOrSpans(t *testing.T) {
	k := newKit(t)
	k.queue("quiet_queue")
	var log lockedBuffer
	registry, spans := prometheus.NewPedanticRegistry(), tracetest.NewInMemoryExporter()
	w := k.worker(worker.Config{Metrics: registry, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))}, "quiet_queue")
	worker.Handle(w, "echo", func(_ context.Context, step worker.Step[string]) (string, error) { return step.Input, nil })
	worker.Handle(w, "fail", func(_ context.Context, step worker.Step[string]) (string, error) { return "", errors.New(step.Input) })
	worker.Handle(w, "panic", func(_ context.Context, step worker.Step[string]) (string, error) { panic(step.Input) })
	worker.Handle(w, "typed", func(context.Context, worker.Step[int]) (string, error) { return "", nil })
	k.start(w)
	for name, state := range map[string]string{"echo": "complete", "fail": "waiting_for_retry", "panic": "waiting_for_retry", "typed": "error"} {
		k.await(k.submit(name, "quiet_queue", secret)[0], state)
	}
	require.NoError(t, w.Stop(t.Context()))
	require.NotContains(t, log.String(), secret)
	require.Contains(t, log.String(), `level=WARN msg="running handler: it failed"`)
	require.NotContains(t, fmt.Sprintf("%+v", spans.GetSpans()), secret)
	metrics, err := registry.Gather()
	require.NoError(t, err)
	text := fmt.Sprint(metrics)
	require.NotContains(t, text, secret)
	for _, name := range []string{"pawl_worker_steps_total", "pawl_worker_handler_seconds", "pawl_worker_call_seconds", "pawl_worker_reports"} {
		require.Contains(t, text, name)
	}
	require.Len(t, spans.GetSpans(), 4)
}

func TestErrorsAreLoggedWhenAskedFor(t *testing.T) {
	k := newKit(t)
	k.queue("loud_queue")
	var log lockedBuffer
	w := k.worker(worker.Config{LogErrors: true, Log: slog.New(slog.NewTextHandler(&log, nil))}, "loud_queue")
	worker.Handle(w, "fail", func(_ context.Context, step worker.Step[string]) (string, error) {
		return "", errors.New("no card " + step.Input)
	})
	worker.Handle(w, "panic", func(_ context.Context, step worker.Step[string]) (string, error) { panic("odd card " + step.Input) })
	k.start(w)
	for _, name := range []string{"fail", "panic"} {
		k.await(k.submit(name, "loud_queue", secret)[0], "waiting_for_retry")
	}
	require.NoError(t, w.Stop(t.Context()))
	require.Contains(t, log.String(), `error="no card `+secret+`"`)
	require.Contains(t, log.String(), `error="odd card `+secret+`"`)
}

func TestAHandlersSpanBelongsToTheTasksTrace(t *testing.T) {
	k := newKit(t)
	k.queue("trace_queue")
	spans := tracetest.NewInMemoryExporter()
	w := k.worker(worker.Config{Tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))}, "trace_queue")
	seen := make(chan trace.SpanContext, 1)
	worker.Handle(w, "traced", func(ctx context.Context, _ worker.Step[any]) (any, error) {
		seen <- trace.SpanContextFromContext(ctx)
		return nil, nil
	})
	k.start(w)
	var messages string
	require.NoError(t, k.pool.QueryRow(t.Context(), `select jsonb_build_array(jsonb_build_object('template_id', $1::int, 'msg_id',
		pgmq.send('orchestration_task_requests', '{"handler": "traced", "queue": "trace_queue", "input": {}}'::jsonb,
			'{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}'::jsonb)))::text`,
		k.template("traced", "trace_queue")).Scan(&messages))
	task := k.process(messages)[0]
	k.await(task, "complete")
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", receive(k, seen, "the handler's span").TraceID().String())
	require.NoError(t, w.Stop(t.Context()))
	span := spans.GetSpans()[0]
	require.Equal(t, "traced", span.Name)
	require.Equal(t, "b7ad6b7169203331", span.Parent.SpanID().String())
}

func TestTwoWorkersShareARegisterer(t *testing.T) {
	k := newKit(t)
	registry := prometheus.NewRegistry()
	for range 2 {
		k.worker(worker.Config{Metrics: registry}, "any_queue")
	}
}

func TestLostConnectionsCostNothingButTime(t *testing.T) {
	k := newKit(t)
	k.queue("cut_queue")
	w := k.worker(worker.Config{Poll: 50 * time.Millisecond, ProvenPoll: 50 * time.Millisecond}, "cut_queue")
	worker.Handle(w, "h", func(_ context.Context, step worker.Step[int]) (int, error) { return step.Input, nil })
	k.start(w)
	inputs := make([]any, 300)
	for i := range inputs {
		inputs[i] = i
	}
	k.submit("h", "cut_queue", inputs...)
	completed := func() int {
		k.settle()
		return k.count(`select count(*) from pawl.tasks where state = 'complete'`)
	}
	for cut := range 5 {
		k.eventually(func() bool { return completed() >= 30*cut })
		// Whatever the worker is saying just now is cut off, its COMMIT included. What is idle may be the test's own by now.
		k.eventually(func() bool {
			return completed() == len(inputs) || k.count(`select count(pg_terminate_backend(pid)) from pg_stat_activity
				where datname = current_database() and state = 'active' and query like 'select pawl.%_steps(%'`) > 0
		})
	}
	k.eventually(func() bool {
		// What it had claimed when it was cut off comes back when the lease ends.
		_, err := k.pool.Exec(t.Context(), `update pgmq.q_cut_queue set vt = clock_timestamp() where vt between clock_timestamp() and clock_timestamp() + interval '29 s'`)
		require.NoError(t, err)
		return completed() == len(inputs)
	})
	require.Zero(t, k.count(`select count(*) from pawl.steps where (result #>> '{}')::int is null`))
	require.Zero(t, k.count(`select count(*) from pawl.steps where attempt <> 1`))
}

func TestAnInsertWakesAnIdleWorker(t *testing.T) {
	k := newKit(t)
	k.queue("idle_queue")
	w := k.worker(worker.Config{Poll: time.Hour, ProvenPoll: time.Hour}, "idle_queue")
	worker.Handle(w, "h", func(context.Context, worker.Step[any]) (any, error) { return nil, nil })
	k.start(w)
	// Once the listener hears, nothing but a wake-up or the looks after it can bring these.
	k.eventually(func() bool {
		return k.count(`select count(*) from pg_stat_activity where datname = current_database() and query ilike 'listen%'`) > 0
	})
	for range 3 {
		k.await(k.submit("h", "idle_queue", nil)[0], "complete")
	}
}

func TestLargeInputsComeByReference(t *testing.T) {
	k := newKit(t)
	k.queue("large_queue")
	w := k.worker(worker.Config{}, "large_queue")
	worker.Handle(w, "size", func(_ context.Context, step worker.Step[string]) (int, error) { return len(step.Input), nil })
	task := k.submit("size", "large_queue", strings.Join(randomWords(20_000), " "))[0]
	require.Equal(t, 1, k.count(`select count(*) from pgmq.q_large_queue where message ? 'by_reference'`))
	k.start(w)
	require.NotEqual(t, "0", k.await(task, "complete").Result)
}

// randomWords is text that Postgres cannot store in much less.
func randomWords(n int) []string {
	words, state := make([]string, n), uint32(7)
	for i := range words {
		state = state*1664525 + 1013904223
		words[i] = fmt.Sprintf("%x", state)
	}
	return words
}

type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String is what was written so far.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
