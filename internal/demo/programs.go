package demo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/internal/demo/handlers"
	"github.com/pawl-dev/pawl/internal/orchestrator"
	"github.com/pawl-dev/pawl/worker"
)

// envName and envLatency tell a process of the demo who it is and how slow its services are.
const (
	envName    = "PAWL_DEMO_NAME"
	envLatency = "PAWL_DEMO_LATENCY"
)

// engineLease is short, so that what a killed orchestrator had read comes back soon; the template's leases are as short.
const engineLease = 3 * time.Second

// idlePoll is how soon a message that came back by itself is seen when nothing else happens.
const idlePoll = time.Second

// programs is the demo's list of processes. A worker in another language is one more entry: its command, and the queues
// it serves by its own means.
func programs(executable, url string, latency time.Duration) []program {
	own := func(name, kind string) program {
		return program{
			name: name, command: []string{executable, "demo-process", kind},
			env: []string{envName + "=" + name, envLatency + "=" + latency.String(), "PAWL_DATABASE_URL=" + url},
		}
	}
	return []program{
		own("orchestrator-1", "orchestrator"), own("orchestrator-2", "orchestrator"),
		own("worker-1", "worker"), own("worker-2", "worker"),
	}
}

// RunProcess is one process of the demo, in the environment that programs sets: it runs until its standard input ends.
// The first argument is its kind: orchestrator, worker, or exec and a command, which gets SIGTERM then.
func RunProcess(ctx context.Context, args []string, stdin io.Reader) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	signal.Ignore(syscall.SIGHUP)
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // its end is all that counts
		stop()
	}()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("process", os.Getenv(envName))
	slog.SetDefault(log)
	url := named(os.Getenv("PAWL_DATABASE_URL"), "pawl-demo "+os.Getenv(envName))
	switch kind := args[0]; {
	case kind == "exec" && len(args) > 1:
		return execute(ctx, args[1:])
	case kind == "orchestrator":
		return runOrchestrator(ctx, url, log)
	case kind == "worker":
		latency, err := time.ParseDuration(os.Getenv(envLatency))
		if err != nil {
			return fmt.Errorf("reading %s: %w", envLatency, err)
		}
		return RunWorker(ctx, url, latency, log)
	}
	return fmt.Errorf("running a demo process: there is no kind %q", args[0])
}

// execute runs a command until ctx ends: then it is asked to stop, and killed if it does not.
func execute(ctx context.Context, command []string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 8 * time.Second
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("running %s: %w", command[0], err)
	}
	return nil
}

// named puts the name into the URL, so that pg_stat_activity tells the processes apart.
func named(url, name string) string {
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	return url + separator + "application_name=" + strings.ReplaceAll(name, " ", "%20")
}

func runOrchestrator(ctx context.Context, url string, log *slog.Logger) error {
	o, err := orchestrator.Start(ctx, orchestrator.Config{
		DatabaseURL: url, Listen: "127.0.0.1:0", VisibilityTimeout: engineLease, ProvenPoll: idlePoll, Grace: 5 * time.Second, Logger: log,
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return o.Stop(context.WithoutCancel(ctx))
}

// RunWorker serves the shop's queues until ctx ends.
func RunWorker(ctx context.Context, url string, latency time.Duration, log *slog.Logger) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return fmt.Errorf("connecting the shop: %w", err)
	}
	defer pool.Close()
	config := worker.Config{DatabaseURL: url, ProvenPoll: idlePoll, Log: log}
	for _, queue := range handlers.Queues {
		config.Queues = append(config.Queues, worker.Queue{Name: queue, Concurrency: 16})
	}
	w, err := worker.New(config)
	if err != nil {
		return err
	}
	handlers.Register(w, &handlers.Shop{DB: pool, Latency: latency})
	return w.Run(ctx)
}
