package messaging_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/messaging"
)

func TestATraceTravelsInHeaders(t *testing.T) {
	t.Parallel()
	state, err := trace.ParseTraceState("vendor=x")
	require.NoError(t, err)
	span := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 2}, SpanID: trace.SpanID{3}, TraceFlags: trace.FlagsSampled, TraceState: state,
	})
	ctx := trace.ContextWithSpanContext(t.Context(), span)
	for _, before := range []string{``, `null`, `{}`, `{"lease_ms": 500, "traceparent": "old"}`} {
		headers, err := messaging.InjectTrace(ctx, raw(before))
		require.NoError(t, err)
		require.Contains(t, string(headers), `"traceparent":"00-01020000000000000000000000000000-0300000000000000-01"`)
		if before != `` && before[len(before)-1] == '}' && len(before) > 2 {
			require.Contains(t, string(headers), `"lease_ms":500`)
		}
		got := trace.SpanContextFromContext(messaging.ExtractTrace(t.Context(), headers))
		require.True(t, got.IsRemote())
		require.True(t, span.WithRemote(true).Equal(got))
	}
	_, err = messaging.InjectTrace(ctx, raw(`[1]`))
	require.Error(t, err)
}

func TestHeadersWithoutATraceChangeNothing(t *testing.T) {
	t.Parallel()
	headers, err := messaging.InjectTrace(t.Context(), raw(`{"a":1}`))
	require.NoError(t, err)
	require.Equal(t, `{"a":1}`, string(headers))
	for _, text := range []string{``, `null`, `{}`, `[1]`, `{`, `{"traceparent":5}`, `{"traceparent":"garbage"}`} {
		ctx := messaging.ExtractTrace(t.Context(), raw(text))
		require.False(t, trace.SpanContextFromContext(ctx).IsValid(), text)
	}
}
