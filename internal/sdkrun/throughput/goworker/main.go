package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/pawl-dev/pawl/worker"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "goworker:", err)
		os.Exit(1)
	}
}

func run() error {
	concurrency, err := strconv.Atoi(os.Getenv("PAWL_CONCURRENCY"))
	if err != nil {
		return fmt.Errorf("reading PAWL_CONCURRENCY: %w", err)
	}
	w, err := worker.New(worker.Config{
		DatabaseURL: os.Getenv("PAWL_DATABASE_URL"),
		Queues:      []worker.Queue{{Name: os.Getenv("PAWL_QUEUE"), Concurrency: concurrency}},
	})
	if err != nil {
		return err
	}
	worker.Handle(w, "nothing", func(context.Context, worker.Step[any]) (any, error) { return nil, nil })
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return w.Run(ctx)
}
