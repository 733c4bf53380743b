package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/examples/orders"
	"github.com/pawl-dev/pawl/internal/demo/handlers"
	"github.com/pawl-dev/pawl/internal/devpg"
	"github.com/pawl-dev/pawl/internal/live"
	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/workflow"
)

// Config of Run. The zero value runs the orders of examples/orders.
type Config struct {
	// Input is a file of orders, Products one of products. Default: those of examples/orders.
	Input, Products string
	// Orders bounds how many of the file's orders run. Default: all.
	Orders int
	// Rate of orders sent, per second. Default: 50. Negative: as fast as they go.
	Rate int
	// Latency of the services that the shop's handlers call; each step takes one to three times this. Default: 20 ms.
	// Negative: none.
	Latency time.Duration
	// Languages that the workers are written in; Go stands in for those left out or not on this machine. Default: all.
	Languages []string
	// Timeout ends a run that does not. Default: 3 minutes.
	Timeout time.Duration
	// Keep the folder with the database and the logs.
	Keep bool
	// Executable that runs the processes: a pawl. Default: this one.
	Executable string
	// Out takes what people read. Default: nobody.
	Out io.Writer
}

func (c Config) withDefaults() (Config, error) {
	if c.Rate == 0 {
		c.Rate = 50
	}
	if c.Latency == 0 {
		c.Latency = 20 * time.Millisecond
	}
	c.Latency = max(c.Latency, 0)
	if len(c.Languages) == 0 {
		c.Languages = Languages
	}
	for _, l := range c.Languages {
		if !slices.Contains(Languages, l) {
			return c, fmt.Errorf("choosing languages: %q is none of %s", l, strings.Join(Languages, ", "))
		}
	}
	if c.Timeout == 0 {
		c.Timeout = 3 * time.Minute
	}
	if c.Out == nil {
		c.Out = io.Discard
	}
	if c.Executable == "" {
		var err error
		if c.Executable, err = os.Executable(); err != nil {
			return c, fmt.Errorf("finding this program's file: %w", err)
		}
	}
	return c, nil
}

// ErrNotProven says that the tables do not show what the demo promises.
var ErrNotProven = errors.New("the tables do not show what was promised")

// run is one run of the demo.
type run struct {
	config    Config
	dir       string
	orders    []handlers.Order
	requests  []request
	server    *devpg.Server
	pool      *pgxpool.Pool
	processes []*process
	screen    *live.Screen
	sent      atomic.Int64
	started   time.Time     // the first request
	ended     time.Time     // all tasks final
	shownAt   time.Duration // since started; of the last line
}

// Run runs the demo and leaves nothing behind, whether it succeeds, fails or is interrupted. The error is ErrNotProven
// when everything ran and a check of the proof failed.
func Run(ctx context.Context, config Config) (err error) {
	r := &run{}
	if r.config, err = config.withDefaults(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.config.Timeout, fmt.Errorf("the demo did not end within %s", r.config.Timeout))
	defer cancel()
	if r.dir, err = os.MkdirTemp("", "pawl-demo-"); err != nil {
		return fmt.Errorf("making the demo's folder: %w", err)
	}
	r.screen = live.New(r.config.Out)
	defer func() { err = errors.Join(err, r.cleanUp(err)) }()
	if err := r.prepare(ctx); err != nil {
		return r.why(ctx, err)
	}
	if err := r.work(ctx); err != nil {
		return r.why(ctx, err)
	}
	return r.prove(ctx)
}

// why prefers the reason why the run was ended to the error that this caused somewhere.
func (r *run) why(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ending the demo: %w", context.Cause(ctx))
	}
	return err
}

func (r *run) say(format string, args ...any) { r.screen.Print(fmt.Sprintf(format, args...)) }

// prepare reads the files and starts the database and the processes.
func (r *run) prepare(ctx context.Context) error {
	products, err := r.read()
	if err != nil {
		return err
	}
	settings := devpg.Config{}
	if r.config.Keep {
		if err := os.Chmod(r.dir, 0o711); err != nil { // the server may run as another user
			return fmt.Errorf("opening the demo's folder: %w", err)
		}
		settings.Dir = filepath.Join(r.dir, "postgres")
	}
	if r.server, err = devpg.Start(ctx, settings); err != nil {
		return err
	}
	r.say("Postgres runs on port %d: private, durable, empty", r.server.Port())
	if err := Prepare(ctx, r.url(), products); err != nil {
		return err
	}
	if r.pool, err = pgxpool.New(ctx, r.url()); err != nil {
		return fmt.Errorf("connecting to the demo's database: %w", err)
	}
	for _, p := range r.programs() {
		r.processes = append(r.processes, newProcess(p, r.dir))
	}
	for _, p := range r.processes {
		if err := p.start(); err != nil {
			return err
		}
	}
	r.say("2 orchestrators and 3 workers started, each a process of its own: %s", strings.Join(r.roster(), "; "))
	return r.allReady(ctx)
}

// roster says which worker serves what.
func (r *run) roster() []string {
	var lines []string
	for _, p := range r.processes {
		if p.language != "" {
			lines = append(lines, fmt.Sprintf("%s (%s)", p.name, strings.Join(p.queues, ", ")))
		}
	}
	return lines
}

func (r *run) url() string { return r.server.URL("postgres") }

func (r *run) read() ([]handlers.Product, error) {
	file, data, err := fileOr(r.config.Input, "examples/orders/orders.csv", orders.CSV)
	if err != nil {
		return nil, err
	}
	if r.orders, err = readOrders(file, data); err != nil {
		return nil, err
	}
	if n := r.config.Orders; n > 0 && n < len(r.orders) {
		r.orders = r.orders[:n]
	}
	r.requests = plan(r.orders)
	r.say("%d orders read from %s", len(r.orders), file)
	return Products(r.config.Products)
}

// Products reads a file of products; without a name those of examples/orders.
func Products(name string) ([]handlers.Product, error) {
	file, data, err := fileOr(name, "examples/orders/products.csv", orders.Products)
	if err != nil {
		return nil, err
	}
	return readProducts(file, data)
}

func fileOr(name, defaultName string, content []byte) (string, []byte, error) {
	if name == "" {
		return defaultName, content, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return name, nil, fmt.Errorf("reading the demo's input: %w", err)
	}
	return name, data, nil
}

// Prepare brings a database to Pawl's SQL, the template shop/fulfil_order and the shop's tables. It may be repeated.
func Prepare(ctx context.Context, url string, products []handlers.Product) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connecting to prepare the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := migrate.Up(ctx, conn, migrate.Config{}); err != nil {
		return fmt.Errorf("migrating the database: %w", err)
	}
	templates, err := workflow.ParseTemplates("examples/orders/shop.yaml", orders.Template)
	if err != nil {
		return err
	}
	for _, t := range templates {
		if _, err := conn.Exec(ctx, "select pawl.register_template($1)", string(t.Definition())); err != nil {
			return fmt.Errorf("applying template %s: %w", t.Ref(), err)
		}
	}
	return handlers.SetUp(ctx, conn, products)
}

// cleanUp ends the processes and the server, and removes the folder unless it is to be kept.
func (r *run) cleanUp(failed error) error {
	stopAll(r.processes)
	if r.pool != nil {
		r.pool.Close()
	}
	if failed != nil {
		r.tailLogs()
	}
	var err error
	if r.server != nil {
		err = r.server.Stop()
	}
	if r.config.Keep {
		r.say("kept: %s (logs; the database's folder is postgres)", r.dir)
		return err
	}
	return errors.Join(err, os.RemoveAll(r.dir))
}
