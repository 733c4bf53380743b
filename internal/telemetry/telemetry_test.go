package telemetry_test

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/telemetry"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestSpansBelongToTheMessagesTrace(t *testing.T) {
	t.Parallel()
	exporter := tracetest.NewInMemoryExporter()
	tracing := telemetry.NewTracing(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)))
	require.True(t, tracing.Enabled())
	tracing.Record(t.Context(), telemetry.Span{Name: "apply", Queue: "q", MessageID: 7, Delivery: 2, Traceparent: parent, Err: errors.New("secret")})
	spans := exporter.GetSpans()
	require.Len(t, spans, 1)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", spans[0].SpanContext.TraceID().String())
	require.Equal(t, "b7ad6b7169203331", spans[0].Parent.SpanID().String())
	require.Equal(t, codes.Error, spans[0].Status.Code)
	require.NotContains(t, spans[0].Status.Description, "secret")
	require.Empty(t, telemetry.Traceparent(telemetry.WithTraceparent(t.Context(), "rubbish")))
}

func TestWithoutACollectorNothingIsTraced(t *testing.T) {
	// Not parallel: it reads the environment.
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		t.Setenv(name, "")
	}
	tracing, err := telemetry.TracingFromEnvironment(t.Context(), "test")
	require.NoError(t, err)
	require.False(t, tracing.Enabled())
	tracing.Record(t.Context(), telemetry.Span{Name: "apply"}) // does no harm
	require.NoError(t, tracing.Shutdown(t.Context()))

	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	tracing, err = telemetry.TracingFromEnvironment(t.Context(), "test")
	require.NoError(t, err)
	require.True(t, tracing.Enabled())
	require.NoError(t, tracing.Shutdown(t.Context()), "nothing was to be sent")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	_, err = telemetry.TracingFromEnvironment(t.Context(), "test")
	require.ErrorContains(t, err, "http/protobuf")
}

func TestLogsAreJSONUnlessPeopleRead(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	telemetry.NewLogger(&out, slog.LevelInfo).Info("hello", "n", 1)
	require.Contains(t, out.String(), `"msg":"hello","n":1}`)
	for text, want := range map[string]slog.Level{"": slog.LevelInfo, "debug": slog.LevelDebug, "WARN": slog.LevelWarn} {
		level, err := telemetry.ParseLevel(text)
		require.NoError(t, err)
		require.Equal(t, want, level)
	}
	_, err := telemetry.ParseLevel("loud")
	require.ErrorContains(t, err, "debug, info, warn or error")
}

// gather gives gauges by name and labels.
func gather(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	found := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			found[name] = m.GetGauge().GetValue()
		}
	}
	return found
}

func TestTheCollectorReadsTheDatabase(t *testing.T) {
	t.Parallel()
	db := pgtest.DB(t)
	_, err := db.Exec(t.Context(), `select pgmq.send('orchestration_task_requests', '{}')`)
	require.NoError(t, err)
	registry := prometheus.NewRegistry()
	_, err = telemetry.NewMetrics(registry)
	require.NoError(t, err)
	_, err = telemetry.NewMetrics(registry)
	require.Error(t, err, "twice is a mistake")
	require.NoError(t, registry.Register(telemetry.NewCollector(db, slog.New(slog.DiscardHandler))))
	found := gather(t, registry)
	require.InDelta(t, 1, found["pawl_queue_messages orchestration_task_requests"], 0)
	require.InDelta(t, 1, found["pawl_queue_visible_messages orchestration_task_requests"], 0)
	require.InDelta(t, 1, found["pawl_database_up"], 0)
	require.Contains(t, found, "pawl_tasks complete")
}

func TestADroppedQueueIsCountedAsMissingBesideTheOthers(t *testing.T) {
	t.Parallel()
	db := pgtest.DB(t)
	_, err := db.Exec(t.Context(), `select pawl.install_queue('gone_queue'), pawl.install_queue('shop_queue'), pgmq.drop_queue('gone_queue')`)
	require.NoError(t, err)
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(telemetry.NewCollector(db, slog.New(slog.DiscardHandler))))
	found := gather(t, registry)
	require.InDelta(t, 1, found["pawl_database_up"], 0)
	require.InDelta(t, 1, found["pawl_queue_missing gone_queue"], 0)
	require.NotContains(t, found, "pawl_queue_messages gone_queue")
	require.Contains(t, found, "pawl_queue_messages shop_queue")
	require.Contains(t, found, "pawl_queue_missing shop_queue")
	require.Zero(t, found["pawl_queue_missing shop_queue"])
}

func TestADatabaseThatIsGoneIsDownAndNoError(t *testing.T) {
	t.Parallel()
	db := pgtest.DB(t)
	db.Close()
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(telemetry.NewCollector(db, slog.New(slog.DiscardHandler))))
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	require.Equal(t, "pawl_database_up", families[0].GetName())
}
