package invoices

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Every is how often a janitor looks. With the entity's limit it bounds how long a crash keeps an invoice.
const Every = 2 * time.Minute

// Janitor releases the invoices of workers that died, until ctx ends. Every process of the module may run one: they do not
// wait for each other. Claims whose workers send heartbeats are left alone, however long they take.
func Janitor(ctx context.Context, db *pgxpool.Pool, log *slog.Logger) {
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	for {
		if _, err := Sweep(ctx, db); err != nil && ctx.Err() == nil {
			log.Error("releasing invoices: it failed, trying again in a while", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Swept says what one round did.
type Swept struct {
	Reverted int `json:"reverted"` // moved back
	Lost     int `json:"lost"`     // somebody else had touched the row: a person decides
	Left     int `json:"left"`     // somebody holds them: the next round
}

// Sweep is one round of a janitor.
func Sweep(ctx context.Context, db *pgxpool.Pool) (Swept, error) {
	var swept Swept
	if _, err := db.Exec(ctx, `select pawl.beat_janitor('billing')`); err != nil {
		return swept, fmt.Errorf("announcing the janitor of billing: %w", err)
	}
	err := db.QueryRow(ctx, `select pawl.revert_stale_claims('billing', 'janitor of billing')`).Scan(&swept)
	if err != nil {
		return swept, fmt.Errorf("reverting stale claims of billing: %w", err)
	}
	return swept, nil
}
