package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/internal/telemetry"
)

// TaskRequests turns requests into tasks. What a request must be is checked here (requestCheck); what it means, above all
// whether its key is held, is decided in SQL.
type TaskRequests struct {
	consumer
	schemas *schemas // outlives restarts
}

// Receive implements actor.Actor.
func (a *TaskRequests) Receive(ctx actor.Context) { a.receive(ctx, a) }

func (a *TaskRequests) read(ctx context.Context, bounds store.Bounds) ([]store.Message, error) {
	return store.ReadRequests(ctx, a.config.Work, bounds)
}

func (a *TaskRequests) process(ctx context.Context, batch []store.Message) error {
	spans := a.begin(batch)
	defer spans.end()
	decisions, waiting, err := checkRequests(ctx, a.config.Work, a.schemas, batch)
	if err != nil {
		return err
	}
	if len(waiting) > 0 {
		a.log().Info("task requests put back for a minute: their version is newer than this program, or their template is parked",
			"count", len(waiting))
		if err := store.PutBack(ctx, a.config.Work, waiting); err != nil {
			return err
		}
	}
	spans.carry(decisions)
	for until := time.Now().Add(a.config.VisibilityTimeout / 3); len(decisions) > 0; {
		outcomes, rest, err := store.ProcessRequests(ctx, a.config.Work, decisions, a.processor())
		if err != nil {
			return err
		}
		for _, o := range outcomes {
			a.config.Metrics.Outcomes.WithLabelValues(a.queue, string(o.Outcome)).Inc()
		}
		spans.settle(outcomes)
		if decisions = rest; time.Now().After(until) {
			break // what many large templates leave no time for comes back by itself
		}
	}
	return nil
}

// requestSpans are the spans of a batch by message, nil when nobody traces. They begin before the work, because a task of
// a producer that does not trace belongs to the trace of its request's span.
type requestSpans map[int64]trace.Span

func (a *TaskRequests) begin(batch []store.Message) requestSpans {
	if !a.config.Tracing.Enabled() {
		return nil
	}
	spans := make(requestSpans, len(batch))
	for _, m := range batch {
		_, spans[m.ID] = a.config.Tracing.Start(a.ctx, telemetry.Span{Name: a.span, Queue: a.queue, MessageID: m.ID,
			Delivery: m.ReadCount, Traceparent: m.Traceparent, Began: time.Now()})
	}
	return spans
}

func (s requestSpans) carry(decisions []store.Decision) {
	for i, d := range decisions {
		if span, ok := s[d.MessageID]; ok {
			decisions[i].Traceparent = telemetry.Traceparent(trace.ContextWithSpan(context.Background(), span))
		}
	}
}

func (s requestSpans) settle(outcomes []store.Outcome) {
	for _, o := range outcomes {
		span, ok := s[o.MessageID]
		if !ok {
			continue
		}
		span.SetAttributes(attribute.String("pawl.outcome", string(o.Outcome)), attribute.String("pawl.task_id", o.TaskID))
		span.End()
		delete(s, o.MessageID)
	}
}

// end ends what has no outcome: put back, taken by another, or failed.
func (s requestSpans) end() {
	for _, span := range s {
		span.SetStatus(codes.Error, "the message stays in the queue, or was another's")
		span.End()
	}
}
