package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/messaging"
)

// TaskFinalizer brings tasks without an open step to their end. Two that meet at one task are no error: the second waits
// for the row, sees the final state and goes on.
type TaskFinalizer struct{ consumer }

// Receive implements actor.Actor.
func (a *TaskFinalizer) Receive(ctx actor.Context) { a.receive(ctx, a) }

func (a *TaskFinalizer) read(ctx context.Context, bounds store.Bounds) ([]store.Message, error) {
	return store.Read(ctx, a.config.Work, messaging.TaskFinalizations, bounds)
}

func (a *TaskFinalizer) process(ctx context.Context, batch []store.Message) error {
	began := time.Now()
	outcomes, err := store.FinalizeTasks(ctx, a.config.Work, batch, a.processor())
	a.trace(batch, began, err)
	for outcome, count := range outcomes {
		a.config.Metrics.Outcomes.WithLabelValues(a.queue, outcome).Add(float64(count))
	}
	return err
}
