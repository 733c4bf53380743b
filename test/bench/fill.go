package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/worker"
)

//go:embed growth.sql
var growthSQL string

const originals = 1000 // finished tasks that are copied

// fillFinished leaves n finished diamonds: a thousand have run, the others are their copies.
func fillFinished(ctx context.Context, e *pawlEngine, n int) error {
	if err := e.Run(ctx, min(n, originals)); err != nil {
		return err
	}
	return e.pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		for _, statement := range []string{growthSQL, "set session_replication_role = replica", "set synchronous_commit = off",
			fmt.Sprintf("call bench.copy_finished(%d)", n/originals-1), "reset all"} {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("copying finished tasks: %w", err)
			}
		}
		return nil
	})
}

// fillOpen leaves n diamonds whose first step waits in a queue that nobody works on.
func fillOpen(ctx context.Context, e *pawlEngine, n int) error {
	if err := e.apply(ctx, templateOf("open", "diamond", "idle_queue")); err != nil {
		return err
	}
	if err := submitMany(ctx, e, client.Request{Template: "bench/open"}, n); err != nil {
		return err
	}
	return e.created(ctx, n)
}

var errLater = errors.New("not now")

// fillBackOff leaves n tasks of a step whose first attempt failed and whose next is a day away.
func fillBackOff(ctx context.Context, e *pawlEngine, n int) error {
	if err := e.apply(ctx, templateOf("failing", "single", "failing_queue")); err != nil {
		return err
	}
	w, err := worker.New(worker.Config{Pool: e.pool, Queues: []worker.Queue{{Name: "failing_queue", Concurrency: 100}}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	worker.Handle(w, "bench.noop", func(context.Context, worker.Step[json.RawMessage]) (any, error) {
		return nil, worker.RetryAfter(errLater, 24*time.Hour)
	})
	if err := w.Start(ctx); err != nil {
		return err
	}
	err = submitMany(ctx, e, client.Request{Template: "bench/failing"}, n)
	if err == nil {
		err = untilTrue(ctx, e.pool, `select case when exists (select from pgmq.q_failing_queue) then false
			else (select count(*) >= $1 from pawl.steps where due_at > now() + interval '1 hour') end`, n)
	}
	return errors.Join(err, w.Stop(ctx))
}

func submitMany(ctx context.Context, e *pawlEngine, r client.Request, n int) error {
	r.Input = map[string]any{"text": payload(e.work.Payload)}
	for sent := 0; sent < n; sent += 1000 {
		requests := make([]client.Request, min(1000, n-sent))
		for i := range requests {
			requests[i] = r
		}
		if _, err := e.client.SubmitMany(ctx, requests); err != nil {
			return err
		}
	}
	return nil
}

// fill makes a state's database and brings it to rest: statistics, no dead rows, everything written.
func (b *bench) fill(ctx context.Context, s *growthState, scale float64) (err error) {
	if s.pool, err = b.database(ctx, fmt.Sprintf("growth_%s_%d", s.database, time.Now().Unix())); err != nil {
		return err
	}
	n := int(math.Round(float64(s.tasks)*scale/originals)) * originals
	s.name = fmt.Sprintf(s.name, grouped(float64(n)))
	began, e := time.Now(), &pawlEngine{}
	err = b.opened(ctx, e, stage{s.pool, baseWork()}, func() error {
		if s.fill == nil || n == 0 {
			return e.Run(ctx, originals) // for plans and statistics that are not those of empty tables
		}
		return s.fill(ctx, e, n)
	})
	if err != nil {
		return fmt.Errorf("filling a database with %s: %w", s.name, err)
	}
	for _, statement := range []string{"vacuum (analyze)", "checkpoint"} {
		if _, err := s.pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	err = s.pool.QueryRow(ctx, "select pg_database_size(current_database()) / 1048576.0").Scan(&s.megabytes)
	fmt.Fprintf(os.Stderr, "filled: %s, %.0f MB in %.0f s\n", s.name, s.megabytes, time.Since(began).Seconds())
	return err
}
