package demo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/actors"
	"github.com/pawl-dev/pawl/internal/demo/handlers"
	"github.com/pawl-dev/pawl/internal/demo/languages"
	"github.com/pawl-dev/pawl/internal/orchestrator"
	"github.com/pawl-dev/pawl/worker"
)

// envName and envLatency tell a process of the demo who it is and how slow its services are.
const (
	envName    = "PAWL_DEMO_NAME"
	envLatency = "PAWL_DEMO_LATENCY"
)

// Languages that the demo has workers in.
const (
	Go         = "go"
	Python     = "python"
	TypeScript = "typescript"
)

// Languages is all of them.
var Languages = []string{Go, Python, TypeScript}

var title = map[string]string{Go: "Go", Python: "Python", TypeScript: "TypeScript"}

// engineLease is short, so that what a killed orchestrator had read comes back soon; the template's leases are as short.
const engineLease = 3 * time.Second

// idlePoll is how soon a message that came back by itself is seen when nothing else happens.
const idlePoll = time.Second

// programs is the demo's list of processes: two orchestrators, and workers that share the shop's queues among them. A Go
// worker stands in for each language that is not wanted, or not there, which say tells in a line.
func (r *run) programs() []program {
	list := []program{
		r.own("orchestrator-1", "orchestrator"), r.own("orchestrator-2", "orchestrator"),
		r.goWorker("go-worker", "shop_orders", "shop_pricing"),
	}
	for i, other := range []struct {
		language, queue string
		find            func(name string) (languages.Command, error)
	}{{Python, "shop_mails", languages.Python}, {TypeScript, "shop_parcels", languages.TypeScript}} {
		name := other.language + "-worker"
		standIn := r.goWorker(fmt.Sprintf("go-worker-%d", i+2), other.queue)
		if !slices.Contains(r.config.Languages, other.language) {
			list = append(list, standIn)
			continue
		}
		command, err := other.find(name)
		if err != nil {
			r.say("%s sits this one out: %v; a Go worker serves %s instead", title[other.language], err, other.queue)
			list = append(list, standIn)
			continue
		}
		list = append(list, program{
			name: name, language: other.language, queues: []string{other.queue}, command: command.Args, dir: command.Dir,
			env: append(command.Env, "PAWL_DATABASE_URL="+named(r.url(), applicationName(name)),
				fmt.Sprintf("SHOP_LATENCY_MS=%g", float64(r.config.Latency)/float64(time.Millisecond))),
		})
	}
	return list
}

// own is a process of this program.
func (r *run) own(name, kind string, args ...string) program {
	return program{
		name: name, command: append([]string{r.config.Executable, "demo-process", kind}, args...),
		env: []string{envName + "=" + name, envLatency + "=" + r.config.Latency.String(), "PAWL_DATABASE_URL=" + r.url()},
	}
}

func (r *run) goWorker(name string, queues ...string) program {
	p := r.own(name, "worker", queues...)
	p.language, p.queues = Go, queues
	return p
}

// RunProcess is one process of the demo, in the environment that programs sets: it runs until its standard input ends.
// The first argument is its kind, orchestrator or worker; the queues of a worker follow.
func RunProcess(ctx context.Context, args []string, stdin io.Reader) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	signal.Ignore(syscall.SIGHUP)
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // its end is all that counts
		stop()
	}()
	name := os.Getenv(envName)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("process", name)
	slog.SetDefault(log)
	url := named(os.Getenv("PAWL_DATABASE_URL"), applicationName(name))
	switch args[0] {
	case "orchestrator":
		return runOrchestrator(ctx, url, log)
	case "worker":
		latency, err := time.ParseDuration(os.Getenv(envLatency))
		if err != nil {
			return fmt.Errorf("reading %s: %w", envLatency, err)
		}
		return RunWorker(ctx, WorkerConfig{DatabaseURL: url, Name: name, Queues: args[1:], Latency: latency, Log: log})
	}
	return fmt.Errorf("running a demo process: there is no kind %q", args[0])
}

// applicationName tells in pg_stat_activity which process a connection is of.
func applicationName(name string) string { return "pawl-demo " + name }

// named puts the application's name into the URL.
func named(url, name string) string {
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	return url + separator + "application_name=" + strings.ReplaceAll(name, " ", "%20")
}

func runOrchestrator(ctx context.Context, url string, log *slog.Logger) error {
	o, err := orchestrator.Start(ctx, orchestrator.Config{
		DatabaseURL: url, Listen: "127.0.0.1:0", Settings: actors.Settings{VisibilityTimeout: engineLease, ProvenPoll: idlePoll}, Grace: 5 * time.Second, Logger: log,
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return o.Stop(context.WithoutCancel(ctx))
}

// WorkerConfig of RunWorker.
type WorkerConfig struct {
	DatabaseURL string
	// Name in the audit. Default: the worker's own.
	Name string
	// Queues to serve. Default: all of the shop's.
	Queues []string
	// Latency of the services that the handlers call; see Config.
	Latency time.Duration
	Log     *slog.Logger
}

// RunWorker serves the shop's queues until ctx ends.
func RunWorker(ctx context.Context, config WorkerConfig) error {
	pool, err := pgxpool.New(ctx, config.DatabaseURL)
	if err != nil {
		return fmt.Errorf("connecting the shop: %w", err)
	}
	defer pool.Close()
	if len(config.Queues) == 0 {
		config.Queues = handlers.Queues
	}
	settings := worker.Config{DatabaseURL: config.DatabaseURL, Name: config.Name, ProvenPoll: idlePoll, Log: config.Log}
	for _, queue := range config.Queues {
		settings.Queues = append(settings.Queues, worker.Queue{Name: queue, Concurrency: 16})
	}
	w, err := worker.New(settings)
	if err != nil {
		return err
	}
	handlers.Register(w, &handlers.Shop{DB: pool, Latency: config.Latency})
	return w.Run(ctx)
}
