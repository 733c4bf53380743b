package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/worker"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "goworker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	grace, _ := strconv.Atoi(os.Getenv("PAWL_GRACE_SECONDS")) // none: the default
	w, err := worker.New(worker.Config{
		DatabaseURL: os.Getenv("PAWL_DATABASE_URL"),
		Queues:      []worker.Queue{{Name: os.Getenv("PAWL_QUEUE")}},
		Grace:       time.Duration(grace) * time.Second,
	})
	if err != nil {
		return err
	}
	register(w)
	return w.Run(ctx)
}
