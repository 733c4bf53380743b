package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// round does a routine's work once and says when to do it next; with an error, when at the earliest.
type round func(ctx context.Context) (next time.Duration, err error)

// routine is an actor that does one thing again and again: clock, idle poll, reconciler, retention, heartbeat.
type routine struct {
	*environment
	name string
	door *door // outlives restarts
	run  round

	failures int // in a row
}

// Receive implements actor.Actor.
func (r *routine) Receive(ctx actor.Context) {
	defer explainPanic()
	switch ctx.Message().(type) {
	case *actor.Started, Tick:
		r.turn()
	case Wake:
		r.door.open()
		if r.failures == 0 { // what fails keeps its rest: the Tick comes within retryMax
			r.turn()
		}
	case *actor.Stopping, *actor.Restarting:
		r.door.sleep()
	}
}

func (r *routine) turn() {
	if r.stopping.Load() {
		return
	}
	ctx, cancel := r.bounded()
	defer cancel()
	next, err := r.run(ctx)
	if err != nil {
		_ = r.report(r.name, "its round", err) // counted and logged; the next round says more
		r.failures++
		next = max(next, backOff(r.failures, retryMin, retryMax))
	} else {
		r.failures = 0
	}
	r.door.wakeIn(next)
}

// rest is the pause after work that began then, so long that the work takes at most one part of so many of a core.
func rest(began time.Time, parts int, least time.Duration) time.Duration {
	return max(least, time.Duration(parts-1)*time.Since(began))
}
