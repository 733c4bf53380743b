package actors

import (
	"context"
	"time"

	"github.com/pawl-dev/pawl/internal/store"
)

const (
	dueAtOnce  = 500  // tasks that one firing moves
	heldAtOnce = 1000 // held steps that one look at the gates releases, of all queues

	// clockPace is the shortest time between two looks.
	clockPace = 5 * time.Millisecond
	// clockBusy is the wait when what is due is held by somebody else.
	clockBusy = 50 * time.Millisecond
	// gateTold is the shortest time between two warnings of gates that raise.
	gateTold = time.Minute
)

// clockwork is the step-enqueuer's: it fires what is due and works the gates, then sleeps until the next due time, at most
// IdlePoll, or until it is told that something is due sooner.
type clockwork struct {
	*environment
	last time.Time
	told time.Time // of a gate that raises: each look meets it again
}

func (c *clockwork) run(ctx context.Context) (time.Duration, error) {
	if rest := clockPace - time.Since(c.last); rest > 0 {
		return rest, nil
	}
	defer func() { c.last = time.Now() }()
	rang, err := store.FireDue(ctx, c.config.Work, dueAtOnce, c.processor())
	if err != nil {
		return 0, err
	}
	c.config.Metrics.Fired.Add(float64(rang.Fired))
	if rang.PutOff > 0 {
		c.log().Warn("put off tasks that were due and raised, for a minute: pawl.fire_due says why when called by hand",
			"count", rang.PutOff, "task_id", rang.Raised.TaskID, "sqlstate", rang.Raised.SQLState)
	}
	opened, err := store.ReleaseHeld(ctx, c.config.Work, heldAtOnce, c.processor())
	if err != nil {
		return 0, err
	}
	c.config.Metrics.Released.Add(float64(opened.Released))
	if opened.Raised.SQLState != "" && time.Since(c.told) > gateTold {
		c.told = time.Now()
		c.log().Warn("a gate raised and stays closed, the others go on: pawl.release_held says why when called by hand",
			"queue", opened.Raised.Queue, "sqlstate", opened.Raised.SQLState)
	}
	if rang.More {
		return 0, nil
	}
	return min(c.until(rang.Next, rang.Fired > 0), c.until(opened.Next, opened.Released > 0)), nil
}

// until the next look. A time that has come although nothing moved is somebody else's work just now.
func (c *clockwork) until(next time.Duration, moved bool) time.Duration {
	switch {
	case next < 0:
		return c.config.IdlePoll
	case next == 0 && !moved:
		return clockBusy
	}
	return min(max(next, clockPace), c.config.IdlePoll)
}
