package messaging

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// headerCarrier is a PGMQ header object as OpenTelemetry's propagation sees it.
// Its methods are those of propagation.TextMapCarrier.
type headerCarrier map[string]json.RawMessage

// Get returns a header that is a string, else "".
func (c headerCarrier) Get(key string) string {
	var value string
	if json.Unmarshal(c[key], &value) != nil {
		return ""
	}
	return value
}

// Set sets a header to a string.
func (c headerCarrier) Set(key, value string) {
	text, err := json.Marshal(value)
	if err == nil { // always: a string
		c[key] = text
	}
}

// Keys lists the headers.
func (c headerCarrier) Keys() []string { return slices.Collect(maps.Keys(c)) }

// InjectTrace writes the trace context of ctx (W3C traceparent and tracestate)
// into message headers, an object or nothing, and returns them. Without a span in
// ctx the headers come back as they are.
func InjectTrace(ctx context.Context, headers json.RawMessage) (json.RawMessage, error) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return headers, nil
	}
	carrier := headerCarrier{}
	if len(headers) > 0 {
		if err := json.Unmarshal(headers, &carrier); err != nil {
			return nil, fmt.Errorf("reading headers to add a trace context: not a JSON object: %w", err)
		}
		if carrier == nil { // null
			carrier = headerCarrier{}
		}
	}
	propagation.TraceContext{}.Inject(ctx, carrier)
	with, err := json.Marshal(carrier)
	if err != nil {
		return nil, fmt.Errorf("writing headers with a trace context: %w", err)
	}
	return with, nil
}

// ExtractTrace returns ctx with the trace context that message headers carry.
// Headers without one, or malformed ones, return ctx as it is: a trace is never a
// reason to refuse a message.
func ExtractTrace(ctx context.Context, headers json.RawMessage) context.Context {
	var carrier headerCarrier
	if len(headers) == 0 || json.Unmarshal(headers, &carrier) != nil {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}
