package worker

import (
	"context"
	"encoding/json"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/messaging"
)

// work runs a handler on a goroutine of its own, and then those that wait for its slot: a goroutine whose stack has grown
// once serves them all.
func (l *lane) work(d *delivery) {
	for d != nil {
		d = l.run(d)
	}
}

// run runs one handler and returns the delivery that takes its slot, if one waits.
func (l *lane) run(d *delivery) (next *delivery) {
	l.attempt(d, func(o *outcome, exits bool) {
		next = l.end(o)
		if exits && next != nil {
			go l.work(next)
		}
	})
	return next
}

// attempt runs one handler and tells how it ended, and whether it ends the goroutine with that.
func (l *lane) attempt(d *delivery, then func(o *outcome, exits bool)) {
	began, ctx := time.Now(), context.WithValue(d.ctx, deliveryKey{}, d)
	if limit := d.timeout(); limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, ErrTimeout)
		defer cancel()
	}
	ctx, span := l.w.tracer.Start(messaging.ExtractTrace(ctx, d.Headers), d.Handler, trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(
			attribute.String("messaging.system", "pgmq"), attribute.String("messaging.destination.name", l.queue),
			attribute.String("pawl.task_id", d.TaskID.String()), attribute.String("pawl.step", d.Step),
			attribute.Int("pawl.attempt", d.Attempt), attribute.Int("pawl.delivery", d.Delivery)))

	var result json.RawMessage
	var err error
	returned, exits := false, false
	// Deferred, because a handler may also end its goroutine with runtime.Goexit, as a test's FailNow does.
	defer func() {
		if !returned {
			value := recover()
			if value == nil {
				value, exits = "the handler ended its goroutine", true
			}
			err = &panicError{value: value}
			l.log.Error("running handler: it panicked", "handler", d.Handler, "task_id", d.TaskID, "step", d.Step, "stack", string(debug.Stack()))
		}
		o := d.conclude(result, err, context.Cause(ctx))
		if o.report.Error != nil && !o.presumed {
			span.SetAttributes(attribute.String("error.type", o.report.Error.Type))
			span.SetStatus(codes.Error, o.report.Error.Type)
			l.logFailure(d, o)
		}
		span.End()
		d.cancel(nil)
		l.w.metrics.ran(d, time.Since(began))
		then(o, exits)
	}()
	if err = context.Cause(ctx); err == nil { // else it was cancelled or lost while it waited for its slot
		result, err = d.handle(ctx, d)
	}
	returned = true
}

func (l *lane) logFailure(d *delivery, o *outcome) {
	if o.giveBack {
		return
	}
	e := o.report.Error
	fields := []any{"handler", d.Handler, "task_id", d.TaskID, "step", d.Step, "attempt", d.Attempt,
		"delivery", d.Delivery, "status", o.report.Status, "type", e.Type, "retryable", e.Retryable}
	if l.w.config.LogErrors {
		fields = append(fields, "error", e.Message) // a panic's value is the message of its failure
	}
	l.log.Warn("running handler: it failed", fields...)
}
