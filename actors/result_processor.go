package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/messaging"
)

// ResultProcessor applies the ends of attempts to their steps and moves their tasks on. It never sees a result: the
// messages' bodies stay in the database.
type ResultProcessor struct{ consumer }

// Receive implements actor.Actor.
func (a *ResultProcessor) Receive(ctx actor.Context) { a.receive(ctx, a) }

func (a *ResultProcessor) read(ctx context.Context, bounds store.Bounds) ([]store.Message, error) {
	return store.Read(ctx, a.config.Work, messaging.StepResults, bounds)
}

func (a *ResultProcessor) process(ctx context.Context, batch []store.Message) error {
	began := time.Now()
	_, err := store.ApplyStepResults(ctx, a.config.Work, batch, a.processor())
	a.trace(batch, began, err)
	return err
}
