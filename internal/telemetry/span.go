package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Span is the work done for one message of a queue. Messages are worked in batches: a message's span lasts as long as
// its batch did.
type Span struct {
	Name        string // "process task request"
	Queue       string
	MessageID   int64
	Delivery    int    // how often the message was read
	Traceparent string // of the message; empty: a trace of its own
	Began       time.Time
	Err         error // why the message stays; nil when it was worked
}

// Record makes the span, ended now.
func (t *Tracing) Record(ctx context.Context, s Span) {
	_, span := t.Start(ctx, s)
	if s.Err != nil {
		// Not the error's text: it may hold what a producer wrote.
		span.SetStatus(codes.Error, "the message stays in the queue")
	}
	span.End()
}

// Start begins the span, for a caller that needs its context before the work is done.
func (t *Tracing) Start(ctx context.Context, s Span) (context.Context, trace.Span) {
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(
			attribute.String("messaging.system", "pgmq"),
			attribute.String("messaging.destination.name", s.Queue),
			attribute.Int64("messaging.message.id", s.MessageID),
			attribute.Int("pawl.delivery", s.Delivery),
		),
	}
	if !s.Began.IsZero() {
		options = append(options, trace.WithTimestamp(s.Began))
	}
	return t.Tracer().Start(WithTraceparent(ctx, s.Traceparent), s.Name, options...)
}

func serviceName(name string) attribute.KeyValue { return attribute.String("service.name", name) }
