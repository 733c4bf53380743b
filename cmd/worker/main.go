// Command worker serves built-in handlers: for measuring, demonstrations and tests that kill workers. A program with
// handlers of its own uses package worker. `worker --help` lists its settings.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/internal/telemetry"
)

const usage = `Usage: worker --queues shop_queue:32,mail_queue:4 [flags]

Serves built-in handlers (noop, echo, sleep, fail, shop) on queues of the database that --database-url names. A queue's
name may say how many handlers run at once. Any number of workers may run.
SIGTERM or SIGINT stops it after the work at hand; a second one at once.
Settings come from flags, PAWL_ variables and a TOML file, in this order. Exit codes: 0 stopped, 1 failed, 2 usage.

`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(run(ctx, stop, os.Args[1:]))
}

// run returns the exit code. stop gives the signals back, so that a second one ends the process.
func run(ctx context.Context, stop func(), args []string) int {
	var settings config.Worker
	flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage, flags.FlagUsages()) }
	config.Bind(flags, &settings)
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return 0
		}
		return complain(2, err)
	}
	if flags.NArg() > 0 {
		return complain(2, fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0)))
	}
	if err := config.Load(&settings, config.Sources{Flags: flags}); err != nil {
		return complain(2, err)
	}
	level, err := telemetry.ParseLevel(settings.LogLevel)
	if err != nil {
		return complain(2, err)
	}
	queues, err := parseQueues(settings.Queues, settings.Concurrency)
	if err != nil {
		return complain(2, err)
	}
	if settings.DatabaseURL == "" {
		return complain(2, errors.New("no database is named; set PAWL_DATABASE_URL or --database-url"))
	}
	pool, err := pgxpool.New(ctx, settings.DatabaseURL)
	if err != nil {
		return complain(2, fmt.Errorf("reading database_url: %w", err))
	}
	defer pool.Close()
	p := program{settings: settings, queues: queues, pool: pool, log: telemetry.NewLogger(os.Stderr, level), registry: prometheus.NewRegistry()}
	go func() { <-ctx.Done(); stop() }()
	if err := p.work(ctx); err != nil {
		return complain(1, err)
	}
	return 0
}

// work runs the worker and its HTTP address until ctx ends.
func (p *program) work(ctx context.Context) error {
	if err := migrate.Check(ctx, p.pool); err != nil {
		return err
	}
	tracing, err := telemetry.TracingFromEnvironment(ctx, "pawl-worker")
	if err != nil {
		return err
	}
	defer p.shutDown(tracing)
	w, err := p.worker(tracing)
	if err != nil {
		return err
	}
	server, err := p.serve(ctx, w.Name())
	if err != nil {
		return err
	}
	defer server.close()
	return w.Run(ctx)
}

// shutDown sends the last spans; that it fails is no failure of the worker.
func (p *program) shutDown(tracing *telemetry.Tracing) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := tracing.Shutdown(ctx); err != nil {
		p.log.Warn("sending the last spans", slog.Any("error", err))
	}
}

func complain(code int, err error) int {
	fmt.Fprintln(os.Stderr, "worker:", err)
	return code
}
