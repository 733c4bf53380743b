package actors

import (
	"time"

	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/internal/telemetry"
)

// trace records a span for each message that carries a trace; without one there is no task to belong to.
func (d *delivery) trace(batch []store.Message, began time.Time, err error) {
	if !d.config.Tracing.Enabled() {
		return
	}
	for _, m := range batch {
		if m.Traceparent == "" {
			continue
		}
		d.config.Tracing.Record(d.ctx, telemetry.Span{Name: d.span, Queue: d.queue, MessageID: m.ID, Delivery: m.ReadCount,
			Traceparent: m.Traceparent, Began: began, Err: err})
	}
}
