package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/worker"
	"github.com/pawl-dev/pawl/workflow"
)

// pawlEngine runs orchestrators as processes of their own and two workers in this one, each with a connection of its own.
type pawlEngine struct {
	pool          *pgxpool.Pool
	work          work
	client        *client.Client
	workers       []*worker.Worker
	orchestrators []*exec.Cmd
	handled       atomic.Int64
}

const pawlWorkers = 2

func (e *pawlEngine) Name() string            { return "Pawl" }
func (e *pawlEngine) Can(work) (string, bool) { return "", true }

func (e *pawlEngine) PIDs() []int {
	var pids []int
	for _, o := range e.orchestrators {
		pids = append(pids, o.Process.Pid)
	}
	return pids
}

func (e *pawlEngine) Open(ctx context.Context, pool *pgxpool.Pool, w work) error {
	e.pool, e.work, e.workers, e.orchestrators = pool, w, nil, nil
	if err := installPawl(ctx, pool); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, "update pawl.engine_settings set staged = $1", w.Staged); err != nil {
		return err
	}
	templates, err := workflow.ParseTemplates("bench.yaml", templateOf(w))
	if err != nil {
		return err
	}
	if e.client, err = client.New(client.Config{Pool: pool}); err != nil {
		return err
	}
	if _, err := e.client.ApplyTemplates(ctx, templates...); err != nil {
		return err
	}
	for range w.Orchestrators {
		if err := e.startOrchestrator(ctx); err != nil {
			return err
		}
	}
	for range pawlWorkers {
		if err := e.startWorker(ctx); err != nil {
			return err
		}
	}
	return nil
}

// installPawl migrates a database: PGMQ and Pawl.
func installPawl(ctx context.Context, pool *pgxpool.Pool) error {
	return pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		_, err := migrate.Up(ctx, conn.Conn(), migrate.Config{})
		return err
	})
}

func (e *pawlEngine) startWorker(ctx context.Context) error {
	w, err := worker.New(worker.Config{Pool: e.pool, Queues: []worker.Queue{{Name: "bench_queue", Concurrency: max(1, e.work.Batch)}},
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return err
	}
	worker.Handle(w, "bench.noop", func(context.Context, worker.Step[json.RawMessage]) (map[string]any, error) {
		e.handled.Add(1)
		return map[string]any{"ok": true}, nil
	})
	e.workers = append(e.workers, w)
	return w.Start(ctx)
}

// startOrchestrator runs the binary that `make build` leaves in bin.
func (e *pawlEngine) startOrchestrator(ctx context.Context) error {
	binary, err := orchestratorBinary()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, binary, "--listen", "off", "--log-level", "error", "--database-url", e.pool.Config().ConnString())
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting an orchestrator (make build puts it into bin): %w", err)
	}
	e.orchestrators = append(e.orchestrators, cmd)
	return nil
}

func (e *pawlEngine) Run(ctx context.Context, n int) error {
	e.handled.Store(0)
	input := map[string]any{"text": payload(e.work.Payload)}
	for sent := 0; sent < n; sent += e.work.Batch {
		requests := make([]client.Request, min(e.work.Batch, n-sent))
		for i := range requests {
			requests[i] = client.Request{Template: "bench/work", Input: input}
		}
		if _, err := e.client.SubmitMany(ctx, requests); err != nil {
			return err
		}
	}
	for e.handled.Load() < int64(n*e.work.steps()) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return untilTrue(ctx, e.pool, "select not exists (select from pawl.tasks where finalized_at is null)")
}

func (e *pawlEngine) One(ctx context.Context) error {
	id, err := e.client.Submit(ctx, client.Request{Template: "bench/work", Input: map[string]any{"text": payload(e.work.Payload)}})
	if err != nil {
		return err
	}
	_, err = e.client.Wait(ctx, id)
	return err
}

func (e *pawlEngine) Close(ctx context.Context) error {
	var errs []error
	for _, w := range e.workers {
		errs = append(errs, w.Stop(ctx))
	}
	for _, o := range e.orchestrators {
		errs = append(errs, o.Process.Signal(syscall.SIGTERM), o.Wait())
	}
	e.client.Close()
	return errors.Join(errs...)
}

// templateOf writes the template of a shape.
func templateOf(w work) []byte {
	var b bytes.Buffer
	b.WriteString("namespace: bench\nname: work\nsteps:\n")
	add := func(name, needs string) {
		b.WriteString("  - {name: " + name + ", handler: bench.noop, queue: bench_queue, needs: [" + needs + "]}\n")
	}
	switch w.Shape {
	case "single":
		add("a", "")
	case "diamond":
		add("a", "")
		add("b", "a")
		add("c", "a")
		add("d", "b, c")
	case "chain", "chain500":
		add("s0", "")
		for i := 1; i < w.steps(); i++ {
			add("s"+strconv.Itoa(i), "s"+strconv.Itoa(i-1))
		}
	default: // a fan: one, many, one
		add("first", "")
		var all []byte
		for i := range w.steps() - 2 {
			name := "s" + strconv.Itoa(i)
			add(name, "first")
			all = append(append(all, name...), ", "...)
		}
		add("last", string(bytes.TrimSuffix(all, []byte(", "))))
	}
	return b.Bytes()
}

// orchestratorBinary is PAWL_ORCHESTRATOR, else what `make build` leaves in bin.
func orchestratorBinary() (string, error) {
	if path := os.Getenv("PAWL_ORCHESTRATOR"); path != "" {
		return path, nil
	}
	return filepath.Abs(filepath.Join("..", "..", "bin", "orchestrator"))
}
