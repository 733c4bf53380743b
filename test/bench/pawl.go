package main

import (
	"context"
	_ "embed" // beside.sql
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/internal/child"
	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/worker"
	"github.com/pawl-dev/pawl/workflow"
)

//go:embed beside.sql
var besideSQL string

// pawlEngine runs orchestrators as processes of their own and two workers in this one, each with a connection of its own.
type pawlEngine struct {
	pool          *pgxpool.Pool
	work          work
	client        *client.Client
	workers       []*worker.Worker
	orchestrators []*exec.Cmd
	handled       atomic.Int64
	submitOnly    bool // no workers: only tasks are made
}

// pawlWorkers at the base case: the second claims while the first reports.
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
	e.pool, e.work, e.client, e.workers, e.orchestrators = pool, w, nil, nil, nil
	if err := installPawl(ctx, pool); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, "update pawl.engine_settings set staged = $1", w.Staged); err != nil {
		return err
	}
	if w.Beside {
		if _, err := pool.Exec(ctx, besideSQL, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("filling in what others use: %w", err)
		}
	}
	var err error
	if e.client, err = client.New(client.Config{Pool: pool}); err != nil {
		return err
	}
	if err := e.apply(ctx, templateOf("work", w.Shape, "bench_queue")); err != nil {
		return err
	}
	for range w.Orchestrators {
		if err := e.startOrchestrator(ctx); err != nil {
			return err
		}
	}
	switch {
	case e.submitOnly:
		return nil
	case w.InFlight > 0:
		return e.startWorker(ctx, w.InFlight)
	}
	for range pawlWorkers {
		if err := e.startWorker(ctx, w.Batch); err != nil {
			return err
		}
	}
	return nil
}

func (e *pawlEngine) apply(ctx context.Context, template []byte) error {
	templates, err := workflow.ParseTemplates("bench.yaml", template)
	if err != nil {
		return err
	}
	_, err = e.client.ApplyTemplates(ctx, templates...)
	return err
}

// installPawl migrates a database: PGMQ and Pawl.
func installPawl(ctx context.Context, pool *pgxpool.Pool) error {
	return pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		_, err := migrate.Up(ctx, conn.Conn(), migrate.Config{})
		return err
	})
}

// quiet logs what should not happen.
var quiet = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))

func (e *pawlEngine) startWorker(ctx context.Context, concurrency int) error {
	w, err := worker.New(worker.Config{Pool: e.pool, Queues: []worker.Queue{{Name: "bench_queue", Concurrency: concurrency}}, Log: quiet})
	if err != nil {
		return err
	}
	paused := e.work.InFlight > 0
	worker.Handle(w, "bench.noop", func(ctx context.Context, _ worker.Step[json.RawMessage]) (map[string]any, error) {
		if paused {
			handlerPause(ctx)
		}
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
	child.DieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting an orchestrator (make build puts it into bin): %w", err)
	}
	e.orchestrators = append(e.orchestrators, cmd)
	return nil
}

func (e *pawlEngine) Run(ctx context.Context, n int) error {
	e.handled.Store(0)
	ids := make([]uuid.UUID, 0, n)
	for len(ids) < n {
		requests := make([]client.Request, min(e.work.Batch, n-len(ids)))
		for i := range requests {
			requests[i] = e.request()
		}
		sent, err := e.client.SubmitMany(ctx, requests)
		if err != nil {
			return err
		}
		ids = append(ids, sent...)
	}
	for e.handled.Load() < int64(n*e.work.steps()) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	for part := range slices.Chunk(ids, 1000) { // by their ids, for the database may hold a million others
		text, err := json.Marshal(part)
		if err != nil {
			return err
		}
		err = untilTrue(ctx, e.pool, `select count(*) = $2 from pawl.tasks where finalized_at is not null
			and task_id = any (array(select jsonb_array_elements_text($1::text::jsonb)::uuid))`, string(text), len(part))
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *pawlEngine) request() client.Request {
	r := client.Request{Template: "bench/work", Input: map[string]any{"text": payload(e.work.Payload)}}
	if e.work.Keys {
		r.Key = uuid.NewString()
	}
	return r
}

// One may be called from any number of goroutines, too.
func (e *pawlEngine) One(ctx context.Context) error {
	id, err := e.client.Submit(ctx, e.request())
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
	if e.client != nil {
		e.client.Close()
	}
	return errors.Join(errs...)
}

// orchestratorBinary is PAWL_ORCHESTRATOR, else what `make build` leaves in bin.
func orchestratorBinary() (string, error) {
	if path := os.Getenv("PAWL_ORCHESTRATOR"); path != "" {
		return path, nil
	}
	return filepath.Abs(filepath.Join("..", "..", "bin", "orchestrator"))
}
