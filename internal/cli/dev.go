package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pawl-dev/pawl/internal/demo"
	"github.com/pawl-dev/pawl/internal/devpg"
	"github.com/pawl-dev/pawl/internal/orchestrator"
)

// workerToken is the variable that opens the worker API.
const workerToken = "PAWL_WORKER_TOKEN"

// devConfig of `pawl dev`.
type devConfig struct {
	dir      string
	port     int
	listen   string
	noWorker bool
	verbose  bool
}

func (a *app) devCommand() *cobra.Command {
	var config devConfig
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine: a private Postgres, an orchestrator and a demo worker",
		Long: `Runs a private Postgres with PGMQ, migrated, an orchestrator, and a worker with the handlers of shop/fulfil_order,
until Ctrl-C; then nothing is left, unless --dir names a folder for the database. Other pawl commands of yours on this
machine find it by themselves; other programs take the address that it prints. They stay with the first one that runs:
a second takes what it prints, PAWL_DATABASE_URL=…. With PAWL_WORKER_TOKEN set, workers may come over HTTP too.`,
		Example: `  pawl dev
  pawl dev --dir ~/pawl-data --port 54329     # keeps its data, always at the same address
  pawl submit shop/fulfil_order --input '{"order_id":"S-1","customer_id":"C-1","country":"DE","items":[{"sku":"TEA-SEN-100","quantity":2}]}' --wait`,
		Args: cobra.NoArgs,
		RunE: run(func(ctx context.Context, _ []string) error { return a.dev(ctx, config) }),
	}
	flags := c.Flags()
	flags.StringVar(&config.dir, "dir", "", "folder of the database, kept: new, empty, or of an earlier pawl dev (default: a temporary one, removed)")
	flags.IntVar(&config.port, "port", 0, "port of Postgres on loopback (default: a free one)")
	flags.StringVar(&config.listen, "listen", "127.0.0.1:0", "address of health checks, metrics and, with PAWL_WORKER_TOKEN, the worker API (default: a free port)")
	flags.BoolVar(&config.noWorker, "no-worker", false, "without the demo worker")
	flags.BoolVarP(&config.verbose, "verbose", "v", false, "log what orchestrator and worker do")
	return a.ownDatabase(c)
}

// ownDatabase is for commands that run a database of their own: they refuse --database-url, and do not show it.
func (a *app) ownDatabase(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&a.databaseURL, "database-url", "", "")
	c.Flags().Lookup("database-url").Hidden = true
	work := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if a.databaseURL != "" {
			return &ranError{usagef("pawl %s runs a database of its own: leave --database-url out", c.Name())}
		}
		return work(cmd, args)
	}
	return c
}

func (a *app) dev(ctx context.Context, config devConfig) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := io.Discard
	if config.verbose {
		out = a.Err
	}
	log := slog.New(slog.NewTextHandler(out, nil))
	server, err := devpg.Start(ctx, devpg.Config{Dir: config.dir, Port: config.port, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	url := server.URL("postgres")
	products, err := demo.Products("")
	if err != nil {
		return err
	}
	if err := demo.Prepare(ctx, url, products); err != nil {
		return err
	}
	o, err := orchestrator.Start(ctx, orchestrator.Config{
		DatabaseURL: url, Listen: config.listen, WorkerToken: os.Getenv(workerToken), Logger: log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopOrchestrator(o)) }()
	forget, other, err := announceDev(ctx, url)
	if err != nil {
		return err
	}
	defer forget()

	failed, stopped := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(stopped)
		if config.noWorker {
			return
		}
		if err := demo.RunWorker(ctx, demo.WorkerConfig{DatabaseURL: url, Latency: 20 * time.Millisecond, Log: log}); err != nil {
			failed <- err
		}
	}()
	defer func() {
		cancel()
		<-stopped
	}()
	if err := a.printDev(devRuns{url: url, addr: o.Addr(), other: other, noWorker: config.noWorker}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		a.say("\nStopping.")
		return nil
	case err := <-failed:
		return fmt.Errorf("running the demo worker: %w", err)
	case <-server.Exited():
		hint := "Start pawl dev again. What it held is gone: --dir keeps it."
		if config.dir != "" {
			hint = "Start pawl dev again with this --dir: it goes on from where it was."
		}
		return &failure{code: ExitFailed, err: fmt.Errorf("running Postgres: %w", server.Failure()), hint: hint}
	}
}

func stopOrchestrator(o *orchestrator.Orchestrator) error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	return o.Stop(ctx)
}

// devRuns is what `pawl dev` tells of itself.
type devRuns struct {
	url, addr string
	other     string // address of the pawl dev that other commands find instead
	noWorker  bool
}

func (a *app) printDev(d devRuns) error {
	if a.json {
		return a.printJSON(map[string]any{"database_url": d.url, "orchestrator": d.addr, "announced": d.other == ""})
	}
	api := ""
	if os.Getenv(workerToken) != "" {
		api = ", v1/worker"
	}
	a.say(`Pawl runs here until Ctrl-C.

  database      %s
  orchestrator  http://%s (healthz, readyz, metrics%s)`, d.url, d.addr, api)
	if !d.noWorker {
		a.say("  worker        the handlers of shop/fulfil_order")
	}
	named := ""
	if d.other != "" {
		a.say("\nAnother pawl dev of yours runs at %s: commands go there unless PAWL_DATABASE_URL names this one.", place(d.other))
		named = fmt.Sprintf("\n  export PAWL_DATABASE_URL='%s'", d.url)
	}
	pawl := typed(os.Args[0])
	a.say(`
In another terminal:
%s
  %s submit shop/fulfil_order --wait --input \
    '{"order_id":"S-1","customer_id":"C-1","country":"DE","items":[{"sku":"TEA-SEN-100","quantity":2}]}'
  %s watch

or without pawl, from any language:

  psql '%s' <<'SQL'
select pgmq.send('orchestration_task_requests', '{"template": "shop/fulfil_order", "input":
  {"order_id": "S-2", "customer_id": "C-1", "country": "DE", "items": [{"sku": "TEA-SEN-100", "quantity": 2}]}}');
SQL`, named, pawl, pawl, d.url)
	return nil
}

// typed is how this program was called: its path as it was given, or its name when the shell found it.
func typed(program string) string {
	switch {
	case filepath.Base(program) == program:
		return "pawl"
	case strings.ContainsAny(program, " '\"$&;()*"):
		return "'" + strings.ReplaceAll(program, "'", `'\''`) + "'"
	}
	return program
}
