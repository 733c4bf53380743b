package actors

import (
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// supervisor is the parent of all actors of a process. Its strategy is one for one: an actor that panics is started
// again after a back-off, the others never notice.
type supervisor struct {
	*environment
	children []child
	stopped  chan struct{} // closed when all of them have ended
}

// child is an actor that is to be, with how others reach it.
type child struct {
	name string // unique
	door *door
	make func() actor.Actor
}

// Receive implements actor.Actor.
func (s *supervisor) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		for _, c := range s.children {
			pid, err := ctx.SpawnNamed(actor.PropsFromProducer(c.make), c.name)
			if err != nil {
				panic(err) // two children of one name: a mistake in Start
			}
			c.door.pid.Store(pid)
		}
	case *actor.Stopped:
		close(s.stopped)
	}
}

// restartWindow is how long a panic counts against an actor.
const restartWindow = time.Minute

// strategy implements actor.SupervisorStrategy.
type strategy struct{ *environment }

// HandleFailure starts the child again after a back-off. The child's mailbox waits meanwhile; a stop reaches it all the
// same.
func (s strategy) HandleFailure(_ *actor.ActorSystem, parent actor.Supervisor, pid *actor.PID,
	statistics *actor.RestartStatistics, reason, _ any,
) {
	if statistics.NumberOfFailures(restartWindow) == 0 {
		statistics.Reset()
	}
	statistics.Fail()
	wait := backOff(statistics.NumberOfFailures(restartWindow), s.config.RestartMin, s.config.RestartMax)
	name := shortName(pid)
	s.config.Metrics.Restarts.WithLabelValues(name).Inc()
	log := s.log().With("actor", name, "in", wait.String())
	if p := (*panicError)(nil); errors.As(asError(reason), &p) {
		log = log.With("error", p, "stack", p.stack)
	}
	log.Error("actor panicked, starting it again; its messages come back after their visibility timeout")
	time.AfterFunc(wait, func() {
		if !s.stopping.Load() {
			parent.RestartChildren(pid)
		}
	})
}

func asError(reason any) error {
	err, _ := reason.(error)
	return err
}

// shortName of an actor, without its parent's and its number.
func shortName(pid *actor.PID) string {
	name := pid.Id
	for i := len(name) - 1; i >= 0; i-- {
		switch name[i] {
		case '-':
			name = name[:i]
		case '/':
			return name[i+1:]
		}
	}
	return name
}
