package store

import (
	"context"
	"fmt"
	"time"
)

// Rang is what one look at the clock did.
type Rang struct {
	Fired int           // tasks that were due and moved
	More  bool          // others are due already
	Next  time.Duration // until the next one is due, by the database's clock; negative: none is
}

// FireDue moves what is due: starts, deadlines, timeouts, retries.
func FireDue(ctx context.Context, db DB, quantity int, processor string) (Rang, error) {
	var r Rang
	var nextMS int64
	err := db.QueryRow(ctx, `
		select coalesce((d->>'fired')::int, 0), coalesce((d->>'more')::boolean, false), coalesce((d->>'next_due_ms')::numeric::bigint, -1)
		from pawl.fire_due($1, $2) d`, quantity, processor).Scan(&r.Fired, &r.More, &nextMS)
	if err != nil {
		return Rang{}, fmt.Errorf("firing what is due: %w", err)
	}
	r.Next = milliseconds(nextMS)
	return r, nil
}

// Opened is what one look at the gates did.
type Opened struct {
	Released int           // held steps that were let through
	Next     time.Duration // until a gate may let the next one through; negative: no gate waits for a time
}

// ReleaseHeld lets held steps through their queues' gates, as far as rate, concurrency and pause allow.
func ReleaseHeld(ctx context.Context, db DB, quantity int, processor string) (Opened, error) {
	var o Opened
	var nextMS int64
	err := db.QueryRow(ctx, `
		select coalesce((d->>'released')::int, 0), coalesce((d->>'next_ms')::numeric::bigint, -1)
		from pawl.release_held($1, $2) d`, quantity, processor).Scan(&o.Released, &nextMS)
	if err != nil {
		return Opened{}, fmt.Errorf("releasing held steps: %w", err)
	}
	o.Next = milliseconds(nextMS)
	return o, nil
}

func milliseconds(n int64) time.Duration {
	if n < 0 {
		return -1
	}
	return time.Duration(n) * time.Millisecond
}
