package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/client"
	"github.com/pawl-dev/pawl/worker"
)

const (
	queue    = "go_throughput_queue"
	handler  = "throughput"
	patience = 10 * time.Minute
)

func main() {
	steps := flag.Int("steps", 20_000, "steps to do")
	concurrency := flag.Int("concurrency", 100, "handlers at once")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	took, err := measure(ctx, *steps, *concurrency)
	if err != nil {
		fmt.Fprintln(os.Stderr, "throughput:", err)
		os.Exit(1)
	}
	fmt.Printf("%d steps in %.2f s with %d handlers at once: %.0f steps per second\n",
		*steps, took.Seconds(), *concurrency, float64(*steps)/took.Seconds())
}

func measure(ctx context.Context, steps, concurrency int) (time.Duration, error) {
	pool, err := pgxpool.New(ctx, os.Getenv("PAWL_DATABASE_URL"))
	if err != nil {
		return 0, fmt.Errorf("connecting: %w", err)
	}
	defer pool.Close()
	if err := prepare(ctx, pool, steps); err != nil {
		return 0, err
	}
	w, err := worker.New(worker.Config{
		DatabaseURL: os.Getenv("PAWL_DATABASE_URL"), Queues: []worker.Queue{{Name: queue, Concurrency: concurrency}},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return 0, err
	}
	var ran atomic.Int64
	worker.Handle(w, handler, func(_ context.Context, step worker.Step[json.RawMessage]) (json.RawMessage, error) {
		ran.Add(1)
		return step.Input, nil
	})
	began := time.Now()
	if err := w.Start(ctx); err != nil {
		return 0, err
	}
	if err := until(ctx, time.Millisecond, func() (bool, error) { return ran.Load() >= int64(steps), nil }); err != nil {
		return 0, fmt.Errorf("working: %w", err)
	}
	err = w.Stop(ctx) // reports the last results
	return time.Since(began), err
}

// prepare sends the requests and waits until all of their steps are ready.
func prepare(ctx context.Context, pool *pgxpool.Pool, steps int) error {
	c, err := client.New(client.Config{Pool: pool})
	if err != nil {
		return err
	}
	defer c.Close()
	requests := make([]client.Request, 0, 1000)
	for sent := range steps {
		requests = append(requests, client.Request{Handler: handler, Queue: queue, Input: sent})
		if len(requests) == cap(requests) || sent == steps-1 {
			if _, err := c.SubmitMany(ctx, requests); err != nil {
				return err
			}
			requests = requests[:0]
		}
	}
	ready := 0
	err = until(ctx, 100*time.Millisecond, func() (bool, error) {
		var there bool
		err := pool.QueryRow(ctx, `select to_regclass('pgmq.q_`+queue+`') is not null`).Scan(&there)
		if err != nil || !there {
			return false, err
		}
		err = pool.QueryRow(ctx, `select count(*) from pgmq.q_`+queue).Scan(&ready)
		return ready >= steps, err
	})
	if err != nil {
		return fmt.Errorf("waiting for %d steps to be ready, %d are; does an orchestrator run?: %w", steps, ready, err)
	}
	return nil
}

func until(ctx context.Context, every time.Duration, condition func() (bool, error)) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if ok, err := condition(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), context.Cause(ctx))
		case <-ticker.C:
		}
	}
}
