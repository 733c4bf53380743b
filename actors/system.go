package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// System is the running actors of one process.
type System struct {
	env        *environment
	supervisor *supervisor
	root       *actor.PID
	doors      map[string][]*door // of consumers, by queue
	clock      *door
	breakOff   context.CancelFunc // ends what runs
	ending     chan struct{}      // closed when a stop begins
	listening  sync.WaitGroup     // the goroutines that carry notifications to doors
	once       sync.Once
	stopErr    error
}

// Start starts the actors and returns at once. They run until Stop, not until ctx ends.
func Start(ctx context.Context, config Config) (*System, error) {
	if config.Work == nil || config.Heartbeats == nil || config.Metrics == nil {
		return nil, errors.New("starting actors: set Work, Heartbeats and Metrics")
	}
	running, breakOff := context.WithCancel(context.WithoutCancel(ctx))
	env := &environment{config: config.WithDefaults(), ctx: running}
	// Proto.Actor's own log says nothing that ours does not, and quotes what panics held.
	env.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	s := &System{env: env, breakOff: breakOff, ending: make(chan struct{}), doors: make(map[string][]*door)}
	s.supervisor = &supervisor{environment: env, stopped: make(chan struct{})}
	s.addConsumers()
	s.addRoutines()
	root, err := env.system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return s.supervisor },
		actor.WithSupervisor(strategy{env})), "orchestrator")
	if err != nil {
		breakOff()
		env.system.Shutdown()
		return nil, fmt.Errorf("starting actors: %w", err)
	}
	s.root = root
	s.listen()
	return s, nil
}

func (s *System) addConsumers() {
	kept, clock := &schemas{}, s.door()
	s.clock = clock
	s.consume("task_request", messaging.TaskRequests, s.env.config.RequestLoops, func(c consumer) actor.Actor {
		return &TaskRequests{consumer: c, schemas: kept}
	})
	s.consume("step_enqueuer", messaging.StepEnqueues, 1, func(c consumer) actor.Actor {
		return &StepEnqueuer{consumer: c, clock: clock}
	})
	s.consume("result_processor", messaging.StepResults, s.env.config.ResultLoops, func(c consumer) actor.Actor {
		return &ResultProcessor{consumer: c}
	})
	s.consume("task_finalizer", messaging.TaskFinalizations, 1, func(c consumer) actor.Actor {
		return &TaskFinalizer{consumer: c}
	})
	s.repeat("clock", clock, (&clockwork{environment: s.env}).run)
}

func (s *System) addRoutines() {
	s.repeat("idle_poll", s.door(), (&idlePoll{environment: s.env, doors: s.doors}).run)
	s.repeat("reconciler", s.door(), (&reconciler{environment: s.env}).run)
	s.repeat("retention", s.door(), (&retention{environment: s.env}).run)
	s.repeat("heartbeat", s.door(), (&heartbeat{environment: s.env}).run)
}

func (s *System) door() *door { return &door{system: s.env.system} }

// consume adds the consumers of one queue.
func (s *System) consume(name, queue string, loops int, make func(consumer) actor.Actor) {
	for i := range loops {
		door := s.door()
		s.doors[queue] = append(s.doors[queue], door)
		s.supervisor.children = append(s.supervisor.children, child{
			name: name + "-" + strconv.Itoa(i+1),
			door: door,
			make: func() actor.Actor {
				return make(consumer{door: door, delivery: delivery{environment: s.env, name: name, queue: queue,
					span: "pawl " + name}})
			},
		})
	}
}

// repeat adds a routine.
func (s *System) repeat(name string, door *door, run round) {
	s.supervisor.children = append(s.supervisor.children, child{name: name, door: door, make: func() actor.Actor {
		return &routine{environment: s.env, name: name, door: door, run: run}
	}})
}

// dueChannel tells that something is due sooner than the clocks may know (pawl.announce_due).
const dueChannel = "pawl_due"

// listen carries notifications to the doors of the consumers and of the clock.
func (s *System) listen() {
	if s.env.config.Listener == nil {
		return
	}
	channels := map[string][]*door{dueChannel: {s.clock}}
	for queue, doors := range s.doors {
		channels[pgmq.QueueChannel(queue)] = doors
	}
	for channel, doors := range channels {
		woken, unsubscribe := s.env.config.Listener.Subscribe(channel)
		s.listening.Go(func() {
			defer unsubscribe()
			for {
				select {
				case <-woken:
					for _, door := range doors {
						door.wake()
					}
				case <-s.ending:
					return
				}
			}
		})
	}
}

// Wake makes the consumers of a queue look now.
func (s *System) Wake(queue string) {
	for _, door := range s.doors[queue] {
		door.wake()
	}
}

// goodbye is how long saying that this process stops may take.
const goodbye = 2 * time.Second

// Stop ends the actors: nothing more is read, what was read is worked until ctx ends; then it is broken off and its
// messages come back after their visibility timeout, which is what the error says. Stop may be called more than once;
// it returns when everything has ended.
func (s *System) Stop(ctx context.Context) error {
	s.once.Do(func() {
		s.env.stopping.Store(true)
		close(s.ending)
		s.listening.Wait()
		s.env.system.Root.Stop(s.root)
		select {
		case <-s.supervisor.stopped:
		case <-ctx.Done():
			s.breakOff()
			<-s.supervisor.stopped
			s.stopErr = fmt.Errorf("stopping actors: work was broken off and will be delivered again: %w", ctx.Err())
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		if err := store.StopProcessor(last, s.env.config.Heartbeats, s.env.config.Processor.ID); err != nil {
			s.env.log().Warn("saying goodbye", "error", err)
		}
		cancel()
		s.breakOff()
		s.env.system.Shutdown()
	})
	return s.stopErr
}
