// Command worker serves built-in handlers: for measuring, demonstrations and tests that kill workers. A program with
// handlers of its own uses package worker. `worker --help` lists its settings.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/internal/program"
	"github.com/pawl-dev/pawl/internal/telemetry"
)

const usage = `Usage: worker --queues shop_queue:32,mail_queue:4 [flags]

Serves built-in handlers (noop, echo, sleep, fail, shop) on queues of the database that --database-url names. A queue's
name may say how many handlers run at once. Any number of workers may run.
SIGTERM or SIGINT stops it after the work at hand; a second one at once.
Settings come from flags, PAWL_ variables and a TOML file, in this order. Exit codes: 0 stopped, 1 failed, 2 usage.

`

func main() { program.Main(run) }

// run returns the exit code.
func run(ctx context.Context, args []string) int {
	var settings config.Worker
	p := program.Program{Name: "worker", Usage: usage, Settings: &settings, LogLevel: &settings.LogLevel}
	p.Work = func(ctx context.Context, log *slog.Logger) error {
		queues, err := parseQueues(settings.Queues, settings.Concurrency)
		if err != nil {
			return program.Misuse(err)
		}
		if err := program.CheckURLs(settings.DatabaseURL, settings.ListenerURL); err != nil {
			return err
		}
		pool, err := pgxpool.New(ctx, settings.DatabaseURL)
		if err != nil {
			return fmt.Errorf("opening the pool: %w", err)
		}
		defer pool.Close()
		s := service{settings: settings, queues: queues, pool: pool, log: log, registry: prometheus.NewRegistry()}
		return s.work(ctx)
	}
	return p.Run(ctx, args)
}

// work runs the worker and its HTTP address until ctx ends.
func (p *service) work(ctx context.Context) error {
	tracing, err := telemetry.TracingFromEnvironment(ctx, "pawl-worker")
	if err != nil {
		return err
	}
	defer p.shutDown(tracing)
	w, err := p.worker(tracing)
	if err != nil {
		return program.Misuse(err) // nothing is connected yet
	}
	server, err := program.Served{
		Address: p.settings.Listen, DB: p.pool, Stopping: func() bool { return ctx.Err() != nil }, Registry: p.registry, Log: p.log,
	}.Start(ctx)
	if err != nil {
		return err
	}
	defer stopServing(server)
	err = program.Await(ctx, p.settings.ConnectWait, p.log, func(connecting context.Context) error {
		if err := migrate.Check(connecting, p.pool); err != nil {
			return err
		}
		return w.Start(ctx)
	})
	if ctx.Err() == nil && err != nil {
		return err
	}
	<-ctx.Done()
	return w.Stop(context.WithoutCancel(ctx))
}

// stopServing ends the HTTP address: the process ends either way.
func stopServing(server *program.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	server.Stop(ctx)
}

// shutDown sends the last spans; that it fails is no failure of the worker.
func (p *service) shutDown(tracing *telemetry.Tracing) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := tracing.Shutdown(ctx); err != nil {
		p.log.Warn("sending the last spans", slog.Any("error", err))
	}
}
