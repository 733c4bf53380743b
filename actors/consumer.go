package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/pawl-dev/pawl/internal/store"
)

// Wake says that there may be something to do: a notification, an idle poll that saw messages, a neighbour's hint.
type Wake struct{}

// Tick says that the time an actor set itself has come.
type Tick struct{}

// again is a consumer's word to itself that its queue is not empty. It goes through the mailbox so that a stop can come
// between two batches.
type again struct{}

// ladder is when a consumer looks again after a wake-up and after emptying its queue: announcements within 3 ms of one
// another are one, and the first may have come before the second's transaction was visible. After the last rung it
// sleeps until something wakes it; the idle poll does within a second or five.
var ladder = []time.Duration{5 * time.Millisecond, 25 * time.Millisecond, 150 * time.Millisecond, 675 * time.Millisecond}

// work is what makes one of the four actors out of a consumer.
type work interface {
	// read takes the next batch: R2's first transaction.
	read(ctx context.Context, bounds store.Bounds) ([]store.Message, error)
	// process works the batch in one transaction, R2's second, which takes the messages itself; in several where the
	// bound of steps in one asks for it (R13). It may be given any part of what was read.
	process(ctx context.Context, batch []store.Message) error
}

// consumer reads a batch, works it, and goes on until its queue is empty: one batch a turn of its mailbox. It blocks its
// own goroutine while the database works; Proto.Actor gives each busy mailbox one of its own.
type consumer struct {
	delivery
	door *door // outlives restarts

	rung  int  // the next step of the ladder
	paced bool // a look is due within the first rung: wake-ups need not hurry it
	tired int  // turns in a row that failed
}

// receive is the actor's Receive.
func (c *consumer) receive(ctx actor.Context, w work) {
	defer explainPanic()
	switch ctx.Message().(type) {
	case *actor.Started:
		c.turn(ctx, w) // the first look, and the one after a restart
	case Wake:
		c.door.open()
		if !c.paced && c.tired <= tiredOfWakes {
			c.rung = 0
			c.turn(ctx, w)
		}
	case Tick, again:
		c.turn(ctx, w)
	case *actor.Stopping, *actor.Restarting:
		c.door.sleep()
	}
}

// turn works one batch and decides when to look next.
func (c *consumer) turn(ctx actor.Context, w work) {
	if c.stopping.Load() {
		return
	}
	c.paced = false
	read, err := c.batch(w)
	switch {
	case err != nil:
		c.tired++
		c.door.wakeIn(backOff(c.tired, retryMin, retryMax))
		return
	case read >= c.config.Batch:
		c.rung = 0
		ctx.Send(ctx.Self(), again{})
	case read > 0:
		// Not the end of the queue for sure: bodies may have filled the batch. Waiting a little makes thin batches
		// fuller under load.
		c.rung, c.paced = 1, true
		c.door.wakeIn(ladder[0])
	case c.rung < len(ladder):
		c.door.wakeIn(ladder[c.rung])
		c.rung++
	}
	c.tired = 0
}

// How long a consumer rests after errors of the database. A wake-up ends the rest (the database may be back), but not
// after so many failures in a row.
const (
	retryMin     = 100 * time.Millisecond
	retryMax     = 5 * time.Second
	tiredOfWakes = 3
)

// batch reads and works one batch and returns how many messages it had.
func (c *consumer) batch(w work) (int, error) {
	ctx, cancel := c.bounded()
	defer cancel()
	messages, err := w.read(ctx, store.Bounds{
		Messages: c.config.Batch,
		Bytes:    c.config.BatchBytes,
		LeaseMS:  c.config.VisibilityTimeout.Milliseconds(),
	})
	if err != nil {
		return 0, c.fail("reading", err)
	}
	if len(messages) == 0 {
		return 0, nil
	}
	return len(messages), c.deliver(w, messages)
}
