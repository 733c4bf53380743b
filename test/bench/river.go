package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
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

	numbers atomic.Int64
	waiting sync.Map // number of a task → channel closed when its last job is complete and durable
	stop    func()
}

type riverArgs struct {
	Left   int    `json:"left"`
	Number int64  `json:"number,omitempty"` // of a task that somebody waits for
	Text   string `json:"text"`
}

func (riverArgs) Kind() string { return "step" }

type riverWorker struct {
	river.WorkerDefaults[riverArgs]
	engine *riverEngine
}

func (w *riverWorker) Work(ctx context.Context, job *river.Job[riverArgs]) error {
	e := w.engine
	if e.w.InFlight > 0 {
		handlerPause(ctx)
	}
	next := riverArgs{Left: job.Args.Left - 1, Number: job.Args.Number, Text: job.Args.Text}
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
	if !w.plain() {
		return "", false
	}
	return "no DAG", w.line()
}

func (e *riverEngine) PIDs() []int { return nil }

func (e *riverEngine) Open(ctx context.Context, pool *pgxpool.Pool, w work) error {
	e.pool, e.w, e.stop = pool, w, nil
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
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: cmp.Or(w.InFlight, max(200, w.Batch))}},
		Workers:           workers,
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Logger:            slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	var events <-chan *river.Event
	events, e.stop = e.client.SubscribeConfig(&river.SubscribeConfig{Kinds: []river.EventKind{river.EventKindJobCompleted}, ChanSize: 100_000})
	go e.listen(events)
	return e.client.Start(ctx)
}

// listen wakes those who wait for a task. River sends the event when the completion is durable.
func (e *riverEngine) listen(events <-chan *river.Event) {
	for event := range events {
		var args riverArgs
		if json.Unmarshal(event.Job.EncodedArgs, &args) != nil || args.Left > 1 || args.Number == 0 {
			continue
		}
		if done, waited := e.waiting.LoadAndDelete(args.Number); waited {
			close(done.(chan struct{}))
		}
	}
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

// One may be called from any number of goroutines, too.
func (e *riverEngine) One(ctx context.Context) error {
	number, done := e.numbers.Add(1), make(chan struct{})
	e.waiting.Store(number, done)
	if _, err := e.client.Insert(ctx, riverArgs{Left: e.w.steps(), Number: number, Text: payload(e.w.Payload)}, nil); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-done:
		return nil
	}
}

func (e *riverEngine) Close(ctx context.Context) error {
	if e.stop == nil { // it did not open
		return nil
	}
	err := e.client.Stop(ctx)
	e.stop()
	return err
}
