package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/pawl-dev/pawl/actors"
	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/internal/program"
	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/internal/telemetry"
	"github.com/pawl-dev/pawl/internal/workerapi"
	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// Orchestrator is a running one.
type Orchestrator struct {
	config    Config
	pools     *pools
	listener  *pgmq.Listener // nil: off
	actors    *actors.System
	server    *program.Server
	tracing   *telemetry.Tracing
	metrics   *registration
	processor store.Processor

	stopping atomic.Bool // not ready yet, or not any more
	once     sync.Once
	stopErr  error
}

// Start checks the database and starts everything; it returns when the actors run. They run until Stop, not until ctx
// ends. The error says what to do: run `pawl migrate`, or correct the URL.
func Start(ctx context.Context, config Config) (*Orchestrator, error) {
	if config.DatabaseURL == "" {
		return nil, errors.New("starting the orchestrator: no database is named; set PAWL_DATABASE_URL or --database-url")
	}
	o := &Orchestrator{config: config.withDefaults(), processor: thisProcess()}
	if err := o.start(ctx); err != nil {
		_ = o.Stop(context.WithoutCancel(ctx)) // the first error is the one that counts
		return nil, fmt.Errorf("starting the orchestrator: %w", err)
	}
	o.config.Logger.Info("orchestrator started", "processor", o.processor.ID, "listen", o.config.Listen, "addr", o.Addr())
	return o, nil
}

func (o *Orchestrator) start(ctx context.Context) error {
	var err error
	if o.pools, err = openPools(ctx, o.config); err != nil {
		return err
	}
	if err := assertReadCommitted(ctx, o.pools.work); err != nil {
		return err
	}
	if err := migrate.Check(ctx, o.pools.work); err != nil {
		return err
	}
	if err := o.assertClaimsCovered(ctx, o.pools.work); err != nil {
		return err
	}
	if o.tracing = o.config.Tracing; o.tracing == nil {
		if o.tracing, err = telemetry.TracingFromEnvironment(ctx, "pawl-orchestrator"); err != nil {
			return err
		}
	}
	o.metrics = &registration{Registerer: o.config.Registry}
	metrics, err := telemetry.NewMetrics(o.metrics)
	if err != nil {
		return err
	}
	if err := o.metrics.Register(telemetry.NewCollector(o.pools.side, o.config.Logger)); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	if err := o.startListener(ctx, metrics); err != nil {
		return err
	}
	o.stopping.Store(true)
	o.server, err = program.Served{ // before there is work to stop again
		Address: o.config.Listen, DB: o.pools.side, Stopping: o.stopping.Load, Registry: o.config.Registry, Log: o.config.Logger,
		Own: map[string]http.Handler{"/v1/worker/": workerapi.Handler(workerapi.Config{ // without a token it says that it is off
			Pool: o.pools.calls, Token: o.config.WorkerToken, Log: o.config.Logger,
		})},
	}.Start(ctx)
	if err != nil {
		return err
	}
	if o.actors, err = actors.Start(ctx, o.actorsConfig(metrics)); err != nil {
		return err
	}
	o.stopping.Store(false)
	return nil
}

func (o *Orchestrator) startListener(ctx context.Context, metrics *telemetry.Metrics) error {
	if o.config.ListenerURL == config.Off {
		return nil
	}
	connect, err := connectListener(o.config.ListenerURL)
	if err != nil {
		return err
	}
	listener, err := pgmq.NewListener(pgmq.ListenerConfig{
		Connect: connect,
		Probe:   o.pools.side,
		Log:     o.config.Logger,
		OnProof: func(proven bool, _ error) {
			if proven {
				metrics.Listening.Set(1)
			} else {
				metrics.Listening.Set(0)
			}
		},
	})
	if err != nil {
		return err
	}
	o.listener = listener
	return listener.Start(context.WithoutCancel(ctx))
}

func (o *Orchestrator) actorsConfig(metrics *telemetry.Metrics) actors.Config {
	c := actors.Config{
		Work: o.pools.work, Heartbeats: o.pools.side, Processor: o.processor,
		Metrics: metrics, Tracing: o.tracing, Log: o.config.Logger,
		Settings: o.config.Settings,
	}
	if o.listener != nil {
		c.Listener = o.listener
	}
	return c
}

// thisProcess is known by a UUID made at its start.
func thisProcess() store.Processor {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return store.Processor{ID: uuid.Must(uuid.NewV7()), Kind: "orchestrator", Host: host, PID: os.Getpid(), Version: program.Version()}
}

// ID of this processor, as audit rows name it.
func (o *Orchestrator) ID() uuid.UUID { return o.processor.ID }

// Addr is where HTTP is served, or "" when it is off.
func (o *Orchestrator) Addr() string { return o.server.Addr() }

// Stop ends the orchestrator: it reads nothing more, finishes what it read, at most for the grace period or until ctx
// ends, and lets go of everything. The error says that work was broken off; it will be delivered again. Stop may be
// called more than once; it returns when everything has ended.
func (o *Orchestrator) Stop(ctx context.Context) error {
	o.once.Do(func() {
		o.stopping.Store(true)
		grace, cancel := context.WithTimeout(ctx, o.config.Grace)
		defer cancel()
		if o.actors != nil {
			o.stopErr = o.actors.Stop(grace)
		}
		o.server.Stop(grace)
		if o.listener != nil {
			o.listener.Stop()
		}
		if o.metrics != nil { // before the pools: a scrape would say that the database is down
			o.metrics.end()
		}
		if o.pools != nil {
			o.pools.close()
		}
		if err := o.tracing.Shutdown(grace); err != nil {
			o.config.Logger.Warn("sending the last spans", "error", err)
		}
		if o.actors != nil {
			o.config.Logger.Info("orchestrator stopped", "processor", o.processor.ID)
		}
	})
	return o.stopErr
}
