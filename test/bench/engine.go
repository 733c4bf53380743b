package main

import (
	"context"
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
}

// steps of one task of a shape.
func (w work) steps() int {
	return map[string]int{"single": 1, "chain": 4, "diamond": 4, "fan20": 22, "fan1000": 1002, "chain500": 500}[w.Shape]
}

// engine is one of those compared. Every method is called from one goroutine.
type engine interface {
	// Name in tables, with its version.
	Name() string
	// Can tells whether the engine has a way to do this work; why not is a few words.
	Can(w work) (why string, can bool)
	// Open prepares an empty database and starts orchestrators and workers.
	Open(ctx context.Context, pool *pgxpool.Pool, w work) error
	// Run submits n tasks and returns when all are complete and durable.
	Run(ctx context.Context, n int) error
	// One submits one task on the idle engine and waits for its result.
	One(ctx context.Context) error
	// PIDs of processes of its own besides this one, for their CPU time.
	PIDs() []int
	// Close stops what Open started.
	Close(ctx context.Context) error
}

// untilTrue polls a query that gives one boolean.
func untilTrue(ctx context.Context, pool *pgxpool.Pool, query string, args ...any) error {
	for {
		var done bool
		if err := pool.QueryRow(ctx, query, args...).Scan(&done); err != nil || done {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
