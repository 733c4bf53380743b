package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Reconciled is what one page of the reconciler found.
type Reconciled struct {
	Busy     bool // another instance is at it
	Wrapped  bool // a pass is over, the next begins
	Repaired struct {
		Engine  int // a defect of Pawl's
		Foreign int // a worker's that lost a message
	}
	Ended int // attempts whose message was over its deliveries
}

// reconcilePage is how many tasks one page of the reconciler goes over.
const reconcilePage = 2000

// Reconcile looks through one page of open work for what nobody will move. grace is how long it must have been idle.
func Reconcile(ctx context.Context, db DB, processor string, grace time.Duration) (r Reconciled, err error) {
	row := db.QueryRow(ctx, `select pawl.reconcile($1, $2, $3::interval)`, processor, reconcilePage, grace)
	if err := answer(row, &r); err != nil {
		return r, fmt.Errorf("reconciling: %w", err)
	}
	return r, nil
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
	if err := answer(db.QueryRow(ctx, `select pawl.sweep(500, $1, $2::jsonb)`, processor, cursor), &s); err != nil {
		return s, fmt.Errorf("sweeping: %w", err)
	}
	return s, nil
}

// answer decodes the object that a function returns.
func answer(row pgx.Row, into any) error {
	var text []byte
	if err := row.Scan(&text); err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
