// Command echoworker is the worker of the end-to-end tests: every handler returns its input's number after a few
// milliseconds, and writes what it did into e2e.effects under the step's token.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/worker"
)

type input struct {
	N int `json:"n"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "echoworker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("PAWL_DATABASE_URL"))
	if err != nil {
		return err
	}
	defer pool.Close()
	w, err := worker.New(worker.Config{
		DatabaseURL: os.Getenv("PAWL_DATABASE_URL"), Queues: []worker.Queue{{Name: "e2e_queue", Concurrency: 16}},
	})
	if err != nil {
		return err
	}
	for _, name := range []string{"first", "left", "right", "last"} {
		worker.Handle(w, "e2e."+name, func(ctx context.Context, step worker.Step[input]) (input, error) {
			select {
			case <-time.After(time.Millisecond + rand.N(10*time.Millisecond)):
			case <-ctx.Done():
				return input{}, context.Cause(ctx)
			}
			_, err := pool.Exec(ctx, "insert into e2e.effects (token) values ($1) on conflict do nothing", step.Token)
			return step.Input, err
		})
	}
	return w.Run(ctx)
}
