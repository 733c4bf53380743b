package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/messaging"
)

// StepEnqueuer looks again at tasks and gates when a message asks for it: what was over the bound of one transaction,
// a queue that was resumed, an operator's command. What waits for a time instead is its clock's (clock.go).
type StepEnqueuer struct {
	consumer
	clock *door
}

// Receive implements actor.Actor.
func (a *StepEnqueuer) Receive(ctx actor.Context) { a.receive(ctx, a) }

func (a *StepEnqueuer) read(ctx context.Context, bounds store.Bounds) ([]store.Message, error) {
	return store.Read(ctx, a.config.Work, messaging.StepEnqueues, bounds)
}

func (a *StepEnqueuer) process(ctx context.Context, batch []store.Message) error {
	began := time.Now()
	_, err := store.ProcessStepEnqueues(ctx, a.config.Work, batch, a.processor())
	a.trace(batch, began, err)
	if err == nil {
		a.clock.wake() // a gate may have changed, a start time come nearer
	}
	return err
}
