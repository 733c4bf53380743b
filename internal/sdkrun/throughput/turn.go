package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/internal/child"
)

// patience bounds each wait of a turn.
const patience = 2 * time.Minute

// turn is one worker's work on one queue.
type turn struct {
	pool               *pgxpool.Pool
	url                string
	steps, concurrency int
	queue, command     string
}

// run returns the steps per second and the CPU time of the worker's process.
func (t *turn) run(ctx context.Context) (rate float64, cpu time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := t.prepare(ctx); err != nil {
		return 0, 0, err
	}
	var said bytes.Buffer
	worker := exec.CommandContext(ctx, "sh", "-c", "exec "+t.command)
	worker.Env = append(os.Environ(), "PAWL_DATABASE_URL="+t.url, "PAWL_QUEUE="+t.queue, fmt.Sprintf("PAWL_CONCURRENCY=%d", t.concurrency))
	worker.Stdout, worker.Stderr = &said, &said
	child.DieWithParent(worker)
	if err := worker.Start(); err != nil {
		return 0, 0, fmt.Errorf("starting the worker: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Wait() }()
	took, err := t.watch(ctx, ended)
	if err == nil {
		_ = worker.Process.Signal(syscall.SIGTERM) // it may have ended just now
		err = <-ended
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%w; the worker said: %s", err, said.Bytes()[max(0, said.Len()-2000):])
	}
	return float64(t.steps) / took.Seconds(), worker.ProcessState.UserTime() + worker.ProcessState.SystemTime(), nil
}

// prepare sends the requests and waits until all of their steps are ready.
func (t *turn) prepare(ctx context.Context) error {
	if _, err := t.pool.Exec(ctx, `select pawl.install_queue($1)`, t.queue); err != nil {
		return fmt.Errorf("making the queue: %w", err)
	}
	c, err := client.New(client.Config{Pool: t.pool})
	if err != nil {
		return err
	}
	defer c.Close()
	for sent := 0; sent < t.steps; {
		requests := make([]client.Request, min(1000, t.steps-sent))
		for i := range requests {
			requests[i] = client.Request{Handler: "nothing", Queue: t.queue}
		}
		if _, err := c.SubmitMany(ctx, requests); err != nil {
			return err
		}
		sent += len(requests)
	}
	ready := 0
	err = t.until(ctx, "the steps are ready", 50*time.Millisecond, nil, func() (bool, error) {
		err := t.pool.QueryRow(ctx, `select count(*) from pgmq.q_`+t.queue).Scan(&ready)
		return ready == t.steps, err
	})
	if err != nil {
		return fmt.Errorf("%d of %d steps: %w", ready, t.steps, err)
	}
	return nil
}

// watch returns the time from the first claim to the last result, both by the database's clock. Its looks, when the worker
// works, are few.
func (t *turn) watch(ctx context.Context, ended <-chan error) (time.Duration, error) {
	var began *time.Time
	err := t.until(ctx, "the worker claims", 5*time.Millisecond, ended, func() (bool, error) {
		err := t.pool.QueryRow(ctx, `select min(last_read_at) from pgmq.q_`+t.queue).Scan(&began)
		return began != nil, err
	})
	if err != nil {
		return 0, err
	}
	err = t.until(ctx, "all is done", 100*time.Millisecond, ended, func() (done bool, err error) {
		err = t.pool.QueryRow(ctx, `select not exists (select from pgmq.q_`+t.queue+`)`).Scan(&done)
		return done, err
	})
	if err != nil {
		return 0, err
	}
	var complete int
	var last time.Time
	err = t.pool.QueryRow(ctx, `select count(*), max(state_since) from pawl.steps where queue = $1 and state = 'complete'`, t.queue).Scan(&complete, &last)
	if err == nil && complete != t.steps {
		err = fmt.Errorf("%d of %d steps are complete", complete, t.steps)
	}
	return last.Sub(*began), err
}

// until looks until a condition holds, or the worker has ended.
func (t *turn) until(ctx context.Context, what string, every time.Duration, ended <-chan error, condition func() (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		ok, err := condition()
		if err != nil {
			return fmt.Errorf("waiting until %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case err := <-ended:
			return errors.Join(fmt.Errorf("waiting until %s: the worker has ended", what), err)
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		case <-ticker.C:
		}
	}
}
