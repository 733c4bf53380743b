package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverEngine chains jobs: each inserts its successor. River has no DAG outside its paid edition. exact completes a job and
// inserts its successor in one transaction, as an exactly-once hand-over needs; else its completer works in the background.
type riverEngine struct {
	exact  bool
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	w      work
	ended  atomic.Int64
}

type riverArgs struct {
	Left int    `json:"left"`
	Text string `json:"text"`
}

func (riverArgs) Kind() string { return "step" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	engine *riverEngine
}

func (w *riverWorker) Work(ctx context.Context, job *river.Job[riverArgs]) error {
	e := w.engine
	next := riverArgs{Left: job.Args.Left - 1, Text: job.Args.Text}
	if e.exact {
		err := pgx.BeginFunc(ctx, e.pool, func(tx pgx.Tx) error {
			if next.Left > 0 {
				if _, err := e.client.InsertTx(ctx, tx, next, nil); err != nil {
					return err
				}
			}
			_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
			return err
		})
		if err != nil {
			return err
		}
	} else if next.Left > 0 {
		if _, err := e.client.Insert(ctx, next, nil); err != nil {
			return err
		}
	}
	if next.Left == 0 {
		e.ended.Add(1)
	}
	return nil
}

func (e *riverEngine) Name() string {
	if e.exact {
		return "River, exactly once"
	}
	return "River"
}

func (e *riverEngine) Can(w work) (string, bool) {
	return "no DAG", w.Shape == "single" || w.Shape == "chain" || w.Shape == "chain500"
}

func (e *riverEngine) PIDs() []int { return nil }

func (e *riverEngine) Open(ctx context.Context, pool *pgxpool.Pool, w work) error {
	e.pool, e.w = pool, w
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migrating River: %w", err)
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{engine: e})
	e.client, err = river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: max(200, w.Batch)}},
		Workers:           workers,
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Logger:            slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	return e.client.Start(ctx)
}

func (e *riverEngine) Run(ctx context.Context, n int) error {
	e.ended.Store(0)
	args := riverArgs{Left: e.w.steps(), Text: payload(e.w.Payload)}
	for sent := 0; sent < n; sent += e.w.Batch {
		batch := make([]river.InsertManyParams, min(e.w.Batch, n-sent))
		for i := range batch {
			batch[i].Args = args
		}
		if _, err := e.client.InsertManyFast(ctx, batch); err != nil {
			return err
		}
	}
	for e.ended.Load() < int64(n) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return untilTrue(ctx, e.pool, "select not exists (select from river_job where finalized_at is null)")
}

func (e *riverEngine) One(ctx context.Context) error { return e.Run(ctx, 1) }

func (e *riverEngine) Close(ctx context.Context) error { return e.client.Stop(ctx) }
