package worker

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-dev/pawl/internal/nearest"
	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/worker/internal/trial"
)

func init() { trial.Deliver = deliver }

// deliver runs a handler as a lane does, on the caller's goroutine and without a database.
func deliver(ctx context.Context, to any, queue string, message []byte) (trial.Outcome, error) {
	w := to.(*Worker)
	d := &delivery{trial: &trial.Outcome{}}
	if err := json.Unmarshal(message, d); err != nil {
		return trial.Outcome{}, fmt.Errorf("reading message: %w", err)
	}
	w.mu.Lock()
	handle := w.handlers[d.Handler]
	w.mu.Unlock()
	if handle == nil {
		return trial.Outcome{}, fmt.Errorf("the worker has no handler %q%s", d.Handler, nearest.Suggestion(d.Handler, w.handlerNames()))
	}
	d.lane = w.newLane(Queue{Name: queue, Concurrency: 1})
	d.handle = func(ctx context.Context, d *delivery) (result json.RawMessage, err error) {
		result, err = handle(ctx, d)
		d.trial.Err = err
		return result, err
	}
	d.ctx, d.cancel = context.WithCancelCause(ctx)
	end := d.trial
	d.lane.attempt(d, func(o *outcome, _ bool) {
		switch {
		case o.giveBack:
			end.Result = nil // and no status
		case o.presumed:
			end.Status, end.Completed = messaging.Complete, true
		default:
			end.Status, end.Result, end.Error = o.report.Status, o.report.Result, o.report.Error
		}
	})
	return *end, nil
}
