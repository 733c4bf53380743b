// Command ledgerworker is the worker of the cluster's tests: its handler writes what it does into a file that no fault
// reaches, before it answers.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/internal/telemetry"
	"github.com/pawl-dev/pawl/worker"
)

type input struct {
	MS        int  `json:"ms"`        // of work
	Fail      int  `json:"fail"`      // attempts that fail
	Permanent bool `json:"permanent"` // and the next is not tried
}

type result struct {
	Nonce string `json:"nonce"`
}

type entry struct {
	What     string            `json:"what"`
	Task     string            `json:"task"`
	Step     string            `json:"step"`
	Attempt  int               `json:"attempt"`
	Delivery int               `json:"delivery"`
	Token    string            `json:"token"`
	Nonce    string            `json:"nonce"`
	Needs    map[string]string `json:"needs"`
	Worker   string            `json:"worker"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "ledgerworker:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := pgxpool.ParseConfig(os.Getenv("PAWL_DATABASE_URL"))
	if err != nil {
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	level, err := telemetry.ParseLevel(os.Getenv("PAWL_LOG_LEVEL"))
	if err != nil {
		return err
	}
	name := os.Getenv("PAWL_NAME")
	w, err := worker.New(worker.Config{
		Pool: pool, Queues: []worker.Queue{{Name: "fire_queue", Concurrency: 16}}, Grace: 5 * time.Second,
		Name: fmt.Sprintf("%s-%d", name, os.Getpid()), NoListen: os.Getenv("PAWL_POOLED") != "", Log: telemetry.NewLogger(os.Stderr, level),
	})
	if err != nil {
		return err
	}
	book, err := os.OpenFile(os.Getenv("PAWL_LEDGER"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer book.Close()
	worker.Handle(w, "fire.work", func(ctx context.Context, step worker.Step[input]) (result, error) {
		e := entry{Task: step.TaskID.String(), Step: step.Name, Attempt: step.Attempt, Delivery: step.Delivery, Token: step.Token,
			Nonce: strings.ToLower(rand.Text()), Needs: make(map[string]string), Worker: name}
		return work(ctx, step, e, book)
	})
	return w.Run(ctx)
}

// work notes that it began, takes its time, fails as told, and notes that it is done.
func work(ctx context.Context, step worker.Step[input], e entry, book *os.File) (result, error) {
	for need := range step.Dependencies() {
		var r result
		if err := step.Dependency(need, &r); err != nil {
			return result{}, err
		}
		e.Needs[need] = r.Nonce
	}
	if err := e.write(book, "start"); err != nil {
		return result{}, err
	}
	select {
	case <-time.After(time.Duration(step.Input.MS) * time.Millisecond):
	case <-ctx.Done():
		return result{}, context.Cause(ctx)
	}
	if step.Attempt <= step.Input.Fail {
		err := error(worker.Error{Type: "as_told", Err: errors.New("the input says so")})
		if step.Input.Permanent {
			err = worker.Permanent(err)
		}
		return result{}, err
	}
	return result{Nonce: e.Nonce}, e.write(book, "done")
}

// write appends one line in one call, so that lines of several processes do not mix.
func (e entry) write(book *os.File, what string) error {
	e.What = what
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = book.Write(append(line, '\n'))
	return err
}
