package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/internal/sqlstate"
	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// Worker runs handlers for the steps of its queues. It starts once.
type Worker struct {
	config   Config
	log      *slog.Logger
	tracer   trace.Tracer
	metrics  *metrics
	lanes    []*lane
	pool     *pgxpool.Pool // claims and reports
	beats    *pgxpool.Pool // leases
	listener *pgmq.Listener
	// handlers do not change after Start.
	handlers   map[string]handler
	putBackFor time.Duration
	windUpFor  time.Duration

	work   context.Context // handlers' contexts come from it
	halt   context.CancelCauseFunc
	life   context.Context // of all calls; ends last
	die    context.CancelFunc
	stop   sync.Once
	ended  chan struct{} // closed when Stop has done its work
	unhook func() bool   // from the context of Start
	// unhurried ends when somebody who stops the worker waits no longer for handlers.
	unhurried context.Context
	hurry     context.CancelFunc
	wanted    context.Context // ends with the first Stop, which a start that still connects does not hold up
	unwanted  context.CancelFunc
	stopped   error // what Stop returns; read after ended

	mu      sync.Mutex
	started bool // guarded by mu
}

// New makes a worker that does nothing until Start. It does not connect.
func New(config Config) (*Worker, error) {
	if err := config.normalize(); err != nil {
		return nil, fmt.Errorf("making worker: %w", err)
	}
	metrics, err := newMetrics(config.Metrics)
	if err != nil {
		return nil, fmt.Errorf("making worker: %w", err)
	}
	w := &Worker{
		config: config, log: config.Log.With("worker", config.Name), metrics: metrics,
		tracer:   config.Tracer.Tracer("github.com/pawl-dev/pawl/worker"),
		handlers: make(map[string]handler), putBackFor: time.Second, windUpFor: windUpTime, ended: make(chan struct{}),
	}
	w.unhurried, w.hurry = context.WithCancel(context.Background())
	w.wanted, w.unwanted = context.WithCancel(context.Background())
	return w, nil
}

// Name is the worker's name in the audit.
func (w *Worker) Name() string { return w.config.Name }

// Start connects, checks that the queues exist, and begins to work; it returns at once then. The worker works until
// Stop is called or ctx ends, which stops it in the same way.
func (w *Worker) Start(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.started:
		return errors.New("starting worker: it was started or stopped before; make a new one")
	case len(w.handlers) == 0:
		return errors.New("starting worker: no handler is registered; call worker.Handle first")
	}
	connecting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.wanted, cancel)()
	if err := w.connect(connecting); err != nil {
		w.disconnect()
		if w.wanted.Err() != nil {
			err = errors.New("it was stopped meanwhile")
		}
		return fmt.Errorf("starting worker: %w", err)
	}
	w.started = true
	// Neither ends with ctx: that begins a graceful stop.
	w.work, w.halt = context.WithCancelCause(context.WithoutCancel(ctx))
	w.life, w.die = context.WithCancel(context.WithoutCancel(ctx))
	if w.listener != nil {
		if err := w.listener.Start(w.life); err != nil {
			return fmt.Errorf("starting worker: %w", err)
		}
	}
	for _, l := range w.lanes {
		if w.listener != nil {
			l.woken, _ = w.listener.Subscribe(pgmq.QueueChannel(l.queue))
		}
		go l.converse()
		go l.beat()
	}
	w.unhook = context.AfterFunc(ctx, func() { _ = w.Stop(context.WithoutCancel(ctx)) })
	w.log.Info("worker started", "queues", len(w.lanes), "handlers", w.handlerNames())
	return nil
}

// Run is Start, then waiting until ctx ends, then Stop, whose error it returns.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.Start(ctx); err != nil {
		return err
	}
	<-w.ended // Start has hooked Stop to ctx
	return w.stopped
}

// connect opens pools and asks for nothing on every queue: that tells whether it exists and may be read.
func (w *Worker) connect(ctx context.Context) (err error) {
	var direct *pgxpool.Config // of ListenerURL: what it says of pools is no setting of the server's
	if w.config.ListenerURL != "" {
		if direct, err = pgxpool.ParseConfig(w.config.ListenerURL); err != nil {
			return fmt.Errorf("reading ListenerURL: %w", err)
		}
	}
	pool := w.config.Pool
	if pool == nil {
		config, err := pgxpool.ParseConfig(w.config.DatabaseURL)
		if err != nil {
			return fmt.Errorf("reading DatabaseURL: %w", err)
		}
		config.MaxConns = max(config.MaxConns, int32(len(w.config.Queues)))
		if pool, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), config); err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
	}
	w.pool = pool
	beats := pool.Config()
	beats.MinConns, beats.MinIdleConns, beats.MaxConns = 0, 0, int32(min(len(w.config.Queues), 4))
	if w.beats, err = pgxpool.NewWithConfig(context.WithoutCancel(ctx), beats); err != nil {
		return fmt.Errorf("connecting for leases: %w", err)
	}
	if !w.config.NoListen {
		w.listener, err = pgmq.NewListener(pgmq.ListenerConfig{
			Connect: pgmq.Connector(cmp.Or(direct, pool.Config())), Probe: w.beats, Log: w.log,
		})
		if err != nil {
			return err
		}
	}
	w.lanes = nil
	for _, q := range w.config.Queues {
		l := w.newLane(q)
		if _, err := claimSteps(ctx, w.pool, l, 0); sqlstate.Of(err) == sqlstate.UnknownQueue {
			return fmt.Errorf("looking at queue %q: %w; a first request for the queue makes it: pawl enqueue HANDLER --queue %s", q.Name, err, q.Name)
		} else if err != nil {
			return fmt.Errorf("looking at queue %q: %w", q.Name, err)
		}
		w.lanes = append(w.lanes, l)
	}
	return nil
}

func (w *Worker) disconnect() {
	if w.beats != nil {
		w.beats.Close()
	}
	if w.pool != nil && w.config.Pool == nil {
		w.pool.Close()
	}
}

// idle is how long a queue without work is left alone.
func (w *Worker) idle() time.Duration {
	if w.listener != nil && w.listener.Proven() {
		return w.config.ProvenPoll
	}
	return w.config.Poll
}
