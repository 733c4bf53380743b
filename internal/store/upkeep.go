package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Reconciled is what one page of the reconciler found.
type Reconciled struct {
	Busy     bool // another instance is at it
	Wrapped  bool // a pass is over, the next begins
	Repaired struct {
		Engine  int // a defect of Pawl's
		Foreign int // a worker's that lost a message
	}
	Ended    int // attempts whose message was over its deliveries
	Absorbed int // messages of attempts that had ended
}

// reconcilePage is how many tasks one page of the reconciler goes over.
const reconcilePage = 2000

// Reconcile looks through one page of open work for what nobody will move. grace is how long it must have been idle.
func Reconcile(ctx context.Context, db DB, processor string, grace time.Duration) (r Reconciled, err error) {
	return r, answered(ctx, db, &r, "reconciling", `select pawl.reconcile($1, $2, $3::interval)`, processor, reconcilePage, grace)
}

// Swept is what one batch of retention removed.
type Swept struct {
	Tasks      int
	Steps      int
	Identities int
	StepKeys   int `json:"step_keys"`
	Old        int // dead letters, absorbed messages, audit, operations and the like
	// Cursor is for the next batch.
	Cursor json.RawMessage
	More   bool
}

// Sweep removes a batch of what is past its retention. cursor is the last batch's, nil to begin.
func Sweep(ctx context.Context, db DB, processor string, cursor json.RawMessage) (s Swept, err error) {
	if cursor == nil {
		cursor = json.RawMessage(`{}`)
	}
	return s, answered(ctx, db, &s, "sweeping", `select pawl.sweep(500, $1, $2::jsonb)`, processor, cursor)
}

// answered decodes the object that a function returns.
func answered(ctx context.Context, db DB, into any, doing, sql string, args ...any) error {
	var answer []byte
	err := db.QueryRow(ctx, sql, args...).Scan(&answer)
	if err == nil {
		err = json.Unmarshal(answer, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
