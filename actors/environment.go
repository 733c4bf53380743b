package actors

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/pawl-dev/pawl/internal/sqlstate"
	"github.com/pawl-dev/pawl/internal/store"
)

// environment is what the actors of one process share.
type environment struct {
	config   Config
	ctx      context.Context // ended when the grace period is over: what runs is broken off
	stopping atomic.Bool     // set when a stop begins: nothing new is read
	system   *actor.ActorSystem
}

func (e *environment) log() *slog.Logger { return e.config.Log }

// processor names this process in the audit.
func (e *environment) processor() string { return e.config.Processor.ID.String() }

// report counts and logs an error of the database and gives it back.
func (e *environment) report(part, doing string, err error) error {
	class := store.Classify(err)
	code := sqlstate.Of(err)
	e.config.Metrics.Errors.WithLabelValues(part, string(class)).Inc()
	if code == sqlstate.Deadlock {
		e.config.Metrics.Deadlocks.Inc()
	}
	if e.ctx.Err() != nil {
		return err // broken off by the end of the grace period
	}
	log := e.log().With("part", part, "doing", doing, "class", class)
	if advice := sqlstate.Advice(code); advice != "" {
		log = log.With("advice", advice)
	}
	switch {
	case code == sqlstate.LockNotAvailable: // a lock held by somebody is everyday life
		log.Debug("database error, trying again", "sqlstate", code)
	case sqlstate.Absent(code): // what is missing is named, a message is not quoted
		log.Warn("database error", "error", err)
	case code != "":
		log.Warn("database error", "sqlstate", code)
	default:
		log.Warn("database error", "error", err)
	}
	return err
}

// door is how others reach one actor: it outlives the actor's restarts.
type door struct {
	system *actor.ActorSystem
	pid    atomic.Pointer[actor.PID]
	posted atomic.Bool // a Wake is in the mailbox: one is as good as ten
	timer  atomic.Pointer[time.Timer]
}

// wake posts a Wake unless there is one.
func (d *door) wake() {
	if pid := d.pid.Load(); pid != nil && d.posted.CompareAndSwap(false, true) {
		d.system.Root.Send(pid, Wake{})
	}
}

// open says that the Wake was taken from the mailbox, before acting on it.
func (d *door) open() { d.posted.Store(false) }

// wakeIn posts a Tick after a while, instead of the one that was to come.
func (d *door) wakeIn(wait time.Duration) {
	next := time.AfterFunc(wait, func() {
		if pid := d.pid.Load(); pid != nil {
			d.system.Root.Send(pid, Tick{})
		}
	})
	if last := d.timer.Swap(next); last != nil {
		last.Stop()
	}
}

// sleep takes the next Tick back.
func (d *door) sleep() {
	if last := d.timer.Swap(nil); last != nil {
		last.Stop()
	}
}
