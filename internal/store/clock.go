package store

import (
	"context"
	"fmt"
	"time"
)

// Rang is what one look at the clock did.
type Rang struct {
	Fired  int           // tasks that were due and moved
	PutOff int           // tasks that raised and wait for a minute
	Raised Raised        // one of these
	More   bool          // others are due already
	Next   time.Duration // until the next one is due, by the database's clock; negative: none is
}

// Raised is what one task or queue raised while the others went on. Its message is left out: it may hold what users wrote.
type Raised struct {
	TaskID   string `json:"task_id"`
	Queue    string `json:"queue"`
	SQLState string `json:"sqlstate"` // empty: nothing raised
}

// FireDue moves what is due: starts, deadlines, timeouts, retries.
func FireDue(ctx context.Context, db DB, quantity int, processor string) (Rang, error) {
	var r Rang
	var nextMS int64
	err := db.QueryRow(ctx, `
		select (d->>'fired')::int, (d->>'put_off')::int, coalesce(nullif(d->'raised', 'null'), '{}'), (d->>'more')::boolean,
			coalesce((d->>'next_due_ms')::numeric::bigint, -1)
		from pawl.fire_due($1, $2) d`, quantity, processor).Scan(&r.Fired, &r.PutOff, &r.Raised, &r.More, &nextMS)
	if err != nil {
		return Rang{}, fmt.Errorf("firing what is due: %w", err)
	}
	r.Next = milliseconds(nextMS)
	return r, nil
}

// Opened is what one look at the gates did.
type Opened struct {
	Released int           // held steps that were let through
	Raised   Raised        // by one gate, which stayed as it was
	Next     time.Duration // until a gate may let the next one through; negative: no gate waits for a time
}

// ReleaseHeld lets held steps through their queues' gates, as far as rate, concurrency and pause allow.
func ReleaseHeld(ctx context.Context, db DB, quantity int, processor string) (Opened, error) {
	var o Opened
	var nextMS int64
	err := db.QueryRow(ctx, `
		select (d->>'released')::int, coalesce(nullif(d->'raised', 'null'), '{}'), coalesce((d->>'next_ms')::numeric::bigint, -1)
		from pawl.release_held($1, $2) d`, quantity, processor).Scan(&o.Released, &o.Raised, &nextMS)
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
