package actors_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawl-dev/pawl/actors"
	"github.com/pawl-dev/pawl/internal/telemetry"
)

func TestConnectionsThatAreCutLoseNothing(t *testing.T) {
	h := newHouse(t)
	h.exec(`update pawl.engine_settings set staged = true`) // more of the work is the actors'
	h.start(actors.Config{Work: newPool(t, h.url, `set application_name = 'victim'`), Settings: actors.Settings{VisibilityTimeout: time.Second}})
	h.work()
	for range 20 {
		h.request()
		h.exec(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'victim'`)
	}
	h.eventually(20, completed)
	require.Zero(t, h.count(`select count(*) from pawl.dead_letters`))
	require.Zero(t, h.count(`select count(*) from (select from pawl.audit where step is null group by task_id having count(*) <> max(revision)) d`),
		"no transition twice")
}

func TestAnIdleOrchestratorLooksOnceForAllQueues(t *testing.T) {
	h := newHouse(t)
	var probes, others atomic.Int32 // others: reads since the first of the probes counted
	h.start(actors.Config{Settings: actors.Settings{IdlePoll: 20 * time.Millisecond}, Work: &faulty{h.db, func(sql string, _ []any) error {
		switch {
		case strings.Contains(sql, "pawl_queues.read_"):
			probes.Store(0)
			others.Add(1)
		case strings.Contains(sql, "where exists"):
			probes.Add(1)
		}
		return nil
	}}})
	require.Eventually(t, func() bool { return probes.Load() > 30 }, patience, 20*time.Millisecond, "%d reads", others.Load())
}

func TestATaskIsOneTrace(t *testing.T) {
	h := newHouse(t)
	exporter := tracetest.NewInMemoryExporter()
	h.start(actors.Config{Tracing: telemetry.NewTracing(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))})
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	h.exec(`select pgmq.send('orchestration_task_requests', '{"template": "house/pair", "input": {}}'::jsonb,
		jsonb_build_object('traceparent', $1::text))`, parent)
	h.eventually(1, `select count(*) from pgmq.q_house_queue where headers->>'traceparent' like '00-0af7651916cd43dd8448eb211c80319c-%'`)
	h.exec(`select pgmq.send('orchestration_step_results', jsonb_build_object('task_id', task_id, 'step', 'first', 'attempt', 1,
		'status', 'complete', 'result', '{}'::jsonb), jsonb_build_object('traceparent', $1::text)) from pawl.tasks`, parent)
	names := make(map[string]bool)
	require.Eventually(t, func() bool {
		for _, span := range exporter.GetSpans() {
			require.Equal(t, "0af7651916cd43dd8448eb211c80319c", span.SpanContext.TraceID().String())
			names[span.Name] = true
		}
		return names["pawl task_request"] && names["pawl result_processor"]
	}, patience, 10*time.Millisecond, "%v", names)
}
