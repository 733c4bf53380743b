package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/worker"
	"github.com/pawl-dev/pawl/worker/workertest"
)

type payment struct {
	Account string `json:"account"`
	Cents   int    `json:"cents"`
}

type receipt struct {
	Number string `json:"number"`
}

// A program that works until it is told to stop.
func Example() {
	w, err := worker.New(worker.Config{
		DatabaseURL: os.Getenv("PAWL_DATABASE_URL"),
		Queues:      []worker.Queue{{Name: "shop_queue", Concurrency: 8}},
	})
	if err != nil {
		log.Fatal(err)
	}
	worker.Handle(w, "shop.charge", func(_ context.Context, step worker.Step[payment]) (receipt, error) {
		return receipt{Number: "R-" + step.Token}, nil
	})

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)       // a second signal ends the process
	if err := w.Run(ctx); err != nil { // it did not start, or left something undone
		log.Print(err)
	}
}

// What a handler returns decides what becomes of its step.
func ExampleHandle() {
	w, err := worker.New(worker.Config{DatabaseURL: "postgres://", Queues: []worker.Queue{{Name: "shop_queue"}}})
	if err != nil {
		log.Fatal(err)
	}
	worker.Handle(w, "shop.charge", func(_ context.Context, step worker.Step[payment]) (receipt, error) {
		switch {
		case step.Input.Cents <= 0:
			return receipt{}, worker.Permanent(errors.New("nothing to pay")) // trying again will not help
		case step.Input.Cents > 100_000:
			return receipt{}, worker.Rejected(worker.Error{Type: "too_much", Err: errors.New("a person must look at it")})
		case step.Attempt == 1:
			return receipt{}, worker.RetryAfter(errors.New("the bank is busy"), time.Minute)
		}
		return receipt{Number: "R-1"}, nil
	})
	for _, message := range []workertest.Message{
		{Input: payment{Cents: 0}}, {Input: payment{Cents: 200_000}}, {Input: payment{Cents: 50}}, {Input: payment{Cents: 50}, Attempt: 2},
	} {
		end := workertest.Deliver(context.Background(), w, "shop.charge", message)
		if end.Err != nil {
			fmt.Println(end.Status+":", end.Err)
		} else {
			fmt.Println(end.Status+":", string(end.Result))
		}
	}
	// Output:
	// failed: nothing to pay
	// rejected: a person must look at it
	// failed: the bank is busy
	// complete: {"number":"R-1"}
}

// The booking and the end of the step are one transaction: both happen, exactly once, or neither does.
func ExampleCall_CompleteTx() {
	var pool *pgxpool.Pool // of Pawl's database
	book := func(ctx context.Context, step worker.Step[payment]) (any, error) {
		return nil, pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `update accounts set cents = cents - $1 where account = $2`, step.Input.Cents, step.Input.Account); err != nil {
				return err
			}
			return step.CompleteTx(ctx, tx, receipt{Number: "R-1"}) // last
		})
	}
	_ = book
}

// One line a step, whatever its handler.
func ExampleMiddleware() {
	logged := func(next worker.HandlerFunc) worker.HandlerFunc {
		return func(ctx context.Context, call worker.Call) (any, error) {
			out, err := next(ctx, call)
			fmt.Println(call.Handler, "attempt", call.Attempt, "error:", err)
			return out, err
		}
	}
	w, err := worker.New(worker.Config{
		DatabaseURL: "postgres://", Queues: []worker.Queue{{Name: "shop_queue"}}, Middleware: []worker.Middleware{logged},
	})
	if err != nil {
		log.Fatal(err)
	}
	worker.Handle(w, "shop.charge", func(context.Context, worker.Step[payment]) (any, error) { return nil, errors.New("no") })
	workertest.Deliver(context.Background(), w, "shop.charge", workertest.Message{})
	// Output:
	// shop.charge attempt 1 error: no
}
