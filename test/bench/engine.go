package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// work is what an engine is asked to do.
type work struct {
	Shape         string // chain, diamond, single, fan20, fan1000, chain500
	Payload       int    // bytes of each task's input
	Batch         int    // of submits, and of claims where the engine has such a thing
	Orchestrators int
	Staged        bool
	InFlight      int  // handlers at once in one worker, each returning within 2 ms; 0: as the batch, and they return at once
	Keys          bool // every task has an identity key
	Beside        bool // others in the same database use gates, step keys and entity claims
}

// steps of one task of a shape.
func (w work) steps() int {
	return map[string]int{"single": 1, "chain": 4, "diamond": 4, "fan20": 22, "fan1000": 1002, "chain500": 500}[w.Shape]
}

// plain work asks for nothing that only Pawl has.
func (w work) plain() bool {
	return w.Orchestrators == baseWork().Orchestrators && !w.Staged && !w.Keys && !w.Beside
}

// line of steps: what a plain job queue can do by enqueueing the successor.
func (w work) line() bool { return w.Shape == "single" || w.Shape == "chain" || w.Shape == "chain500" }

// engine is one of those compared. Every method is called from one goroutine.
type engine interface {
	// Name in tables.
	Name() string
	// Can tells whether the engine has a way to do this work; why not is a few words, none when nobody would ask.
	Can(w work) (why string, can bool)
	// Open prepares an empty database and starts orchestrators and workers.
	Open(ctx context.Context, pool *pgxpool.Pool, w work) error
	// Run submits n tasks and returns when all are complete and durable.
	Run(ctx context.Context, n int) error
	// One submits one task on the idle engine and waits for its result.
	One(ctx context.Context) error
	// PIDs of processes of its own besides this one, for their CPU time and memory.
	PIDs() []int
	// Close stops what Open started.
	Close(ctx context.Context) error
}

// handlerPause is the moment that a handler takes when handlers shall return one by one.
func handlerPause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(rand.Int64N(int64(2 * time.Millisecond)))):
	}
}

// untilTrue polls a query that gives one boolean.
func untilTrue(ctx context.Context, pool *pgxpool.Pool, query string, args ...any) error {
	return until(ctx, func() (bool, error) {
		var done bool
		err := pool.QueryRow(ctx, query, args...).Scan(&done)
		return done, err
	})
}

// until asks every 5 ms.
func until(ctx context.Context, ask func() (bool, error)) error {
	for {
		if done, err := ask(); err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
