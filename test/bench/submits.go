package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/client"
)

// submits are measured on one connection, while orchestrators make tasks of them and nobody works.
var submits = []struct {
	label string
	batch int
}{
	{"submits one by one, one connection", 1},
	{"submits in batches of 100, one connection", 100},
}

// submitted is what such a run gave: requests that the database has acknowledged, and tasks that stand, per second.
const (
	acknowledged = ", acknowledged"
	created      = ", tasks created"
)

// submit measures each way of submitting once.
func (b *bench) submit(ctx context.Context, rep int) error {
	for _, how := range submits {
		name := "Pawl | " + how.label
		if !b.wanted(name) {
			continue
		}
		w := baseWork()
		err := b.fresh(ctx, func(pool *pgxpool.Pool) error {
			e := &pawlEngine{submitOnly: true}
			return b.opened(ctx, e, stage{pool, w}, func() error {
				sent, stand, err := b.submitFor(ctx, e, how.batch)
				b.results[name+acknowledged] = append(b.results[name+acknowledged], sent)
				b.results[name+created] = append(b.results[name+created], stand)
				fmt.Fprintf(os.Stderr, "%d  %-55s %9.0f acknowledged/s %9.0f created/s\n", rep, name, sent.TasksPerSecond, stand.TasksPerSecond)
				return err
			})
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// submitFor submits for as long as a run lasts, then waits until all are tasks.
func (b *bench) submitFor(ctx context.Context, e *pawlEngine, batch int) (sent, stand figures, err error) {
	single, err := b.connect(ctx, e.pool.Config().ConnConfig.Database, 1)
	if err != nil {
		return sent, stand, err
	}
	defer single.Close()
	c, err := client.New(client.Config{Pool: single})
	if err != nil {
		return sent, stand, err
	}
	defer c.Close()
	submit := func() error {
		if batch == 1 {
			_, err := c.Submit(ctx, e.request())
			return err
		}
		requests := make([]client.Request, batch)
		for i := range requests {
			requests[i] = e.request()
		}
		_, err := c.SubmitMany(ctx, requests)
		return err
	}
	for range 20 { // connects and prepares
		if err := submit(); err != nil {
			return sent, stand, err
		}
	}
	if err := e.created(ctx, 20*batch); err != nil {
		return sent, stand, err
	}
	n, began := 0, time.Now()
	for time.Since(began).Seconds() < b.seconds {
		if err := submit(); err != nil {
			return sent, stand, err
		}
		n += batch
	}
	sent.TasksPerSecond = float64(n) / time.Since(began).Seconds()
	err = e.created(ctx, 20*batch+n)
	stand.TasksPerSecond = float64(n) / time.Since(began).Seconds()
	return sent, stand, err
}

// created waits until the database has n tasks, which are not counted while requests are left.
func (e *pawlEngine) created(ctx context.Context, n int) error {
	return untilTrue(ctx, e.pool, `select case when exists (select from pgmq.q_orchestration_task_requests) then false
		else (select count(*) >= $1 from pawl.tasks) end`, n)
}
