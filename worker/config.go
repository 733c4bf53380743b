package worker

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawl-dev/pawl/messaging"
)

// Config is what a worker needs: a database and queues. The zero value of everything else is its default.
type Config struct {
	// Pool or DatabaseURL leads to the database. Claims and reports go through the pool, one connection a queue at a
	// time; leases and notifications have connections of their own, made from the pool's settings. A pool that the worker
	// did not make is left open.
	Pool        *pgxpool.Pool
	DatabaseURL string
	// Queues to work on, each with a bound of its own.
	Queues []Queue
	// Name tells the worker's process apart, in the audit and in logs. Empty: host, process id and a random part.
	Name string
	// Grace is how long Stop lets handlers finish before their contexts end. Zero: 20 s. Negative: not at all.
	Grace time.Duration
	// Poll is how often an idle queue is looked at while notifications are not proven to arrive, ProvenPoll while they
	// are. Zero: 1 s and 5 s.
	Poll, ProvenPoll time.Duration
	// ListenerURL leads to the server itself when Pool or DatabaseURL leads through a transaction pooler, which passes no
	// notification on. The pool's hooks are not for it. Empty: as the pool's connections.
	ListenerURL string
	// NoListen does without LISTEN, where ListenerURL cannot be had. The worker polls.
	NoListen bool
	// RefuseUnknownFields makes fields of an input that the handler's type does not have an error. By default they are
	// left to other steps: a task's input is one for all of them, and the template's input_schema guards it.
	RefuseUnknownFields bool
	// Middleware wraps every handler, the first of it outermost. None: no cost.
	Middleware []Middleware
	// Log takes what happens, never an input, a result or, without LogErrors, a handler's error. Nil: slog.Default().
	Log *slog.Logger
	// LogErrors adds the texts of handlers' errors and the values of their panics to the log, which may then hold what an
	// input holds. Without it they stand in the step alone.
	LogErrors bool
	// Metrics takes the worker's metrics (pawl_worker_…). Nil: none.
	Metrics prometheus.Registerer
	// Tracer makes a span for each handler, under the task's trace. Nil: OpenTelemetry's global provider.
	Tracer trace.TracerProvider
}

// Queue is a queue to work on.
type Queue struct {
	Name string
	// Concurrency is how many handlers run at once. Zero: 32.
	Concurrency int
}

func (c *Config) normalize() error {
	switch {
	case c.Pool == nil && c.DatabaseURL == "":
		return errors.New("set Pool or DatabaseURL, which is empty: pawl dev prints one, for PAWL_DATABASE_URL")
	case c.Pool != nil && c.DatabaseURL != "":
		return errors.New("set Pool or DatabaseURL, not both")
	case c.ListenerURL != "" && c.NoListen:
		return errors.New("set ListenerURL or NoListen, not both")
	case len(c.Queues) == 0:
		return errors.New("set Queues: name at least one queue")
	}
	for name, value := range map[string]time.Duration{"Poll": c.Poll, "ProvenPoll": c.ProvenPoll} {
		if value < 0 {
			return fmt.Errorf("%s is negative: %s; set a time, or zero for the default", name, value)
		}
	}
	if slices.ContainsFunc(c.Middleware, func(m Middleware) bool { return m == nil }) {
		return errors.New("one of Middleware is nil")
	}
	c.Middleware = slices.Clone(c.Middleware)
	c.Queues = slices.Clone(c.Queues) // the defaults are not the caller's
	seen := map[string]bool{}
	for i := range c.Queues {
		q := &c.Queues[i]
		if err := messaging.ValidateStepQueueName(q.Name); err != nil {
			return err
		}
		if seen[q.Name] {
			return fmt.Errorf("queue %q is named twice", q.Name)
		}
		seen[q.Name] = true
		if q.Concurrency = cmp.Or(q.Concurrency, 32); q.Concurrency < 0 {
			return fmt.Errorf("queue %q: concurrency %d is negative", q.Name, q.Concurrency)
		}
	}
	if c.Name == "" {
		host, _ := os.Hostname() // without one the process id and the random part are left
		c.Name = fmt.Sprintf("%s-%d-%s", host, os.Getpid(), strings.ToLower(rand.Text()[:4]))
	}
	if len(c.Name) > 200 {
		return fmt.Errorf("name of %d bytes is over the limit of 200", len(c.Name))
	}
	c.Grace = cmp.Or(c.Grace, 20*time.Second)
	c.Poll = cmp.Or(c.Poll, time.Second)
	c.ProvenPoll = cmp.Or(c.ProvenPoll, 5*time.Second)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Tracer == nil {
		c.Tracer = otel.GetTracerProvider()
	}
	return nil
}
