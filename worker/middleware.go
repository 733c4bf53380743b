package worker

import (
	"context"
	"log/slog"
)

// HandlerFunc is a handler without its types: it decodes the input itself. The value becomes the step's result as JSON.
type HandlerFunc func(ctx context.Context, call Call) (any, error)

// Middleware wraps every handler of a worker: [Config.Middleware]. It may look at the call, put something into the context,
// refuse by an error without calling next, change the result or the error. It is called once for each handler, when that is
// registered; what it returns is called for each step, from many goroutines at once.
//
// What it sees of an end is what the handler made of it: an input that does not fit is an error of next, a panic goes through
// it and fails the attempt (it may recover, and return an error instead), and so does runtime.Goexit. Of a result that the
// database refuses, or an attempt that ended while it waited for its slot, it sees nothing.
type Middleware func(next HandlerFunc) HandlerFunc

// wrap puts the worker's middleware around a handler: the first is the outermost.
func (w *Worker) wrap(handle HandlerFunc) HandlerFunc {
	for i := len(w.config.Middleware) - 1; i >= 0; i-- {
		if handle = w.config.Middleware[i](handle); handle == nil {
			panic("worker: registering handler: a middleware returned nil")
		}
	}
	return handle
}

// deliveryKey is where a handler's context has its delivery.
type deliveryKey struct{}

// Logger is the worker's log with the step that a handler's context belongs to: task_id, step, attempt, delivery and handler.
// Outside of a handler it is slog.Default().
func Logger(ctx context.Context) *slog.Logger {
	d, ok := ctx.Value(deliveryKey{}).(*delivery)
	if !ok {
		return slog.Default()
	}
	return d.lane.log.With("task_id", d.TaskID, "step", d.Step, "attempt", d.Attempt, "delivery", d.Delivery, "handler", d.Handler)
}
