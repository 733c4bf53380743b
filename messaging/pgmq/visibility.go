package pgmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// VisibilityChange moves the time at which messages are visible again.
type VisibilityChange struct {
	Queue string
	IDs   []int64
	// Visibility counts from now, in whole seconds (rounded up). Zero: visible at
	// once.
	Visibility time.Duration
}

// SetVT hides messages until the given time from now and returns the ids of
// those that exist. It leaves the read count alone, and does not ask who holds a
// message.
func SetVT(ctx context.Context, db DB, change VisibilityChange) ([]int64, error) {
	if err := ValidateQueueName(change.Queue); err != nil {
		return nil, fmt.Errorf("setting visibility in queue: %w", err)
	}
	if change.Visibility < 0 {
		return nil, fmt.Errorf("setting visibility in queue %q: %s is negative", change.Queue, change.Visibility)
	}
	if len(change.IDs) == 0 {
		return nil, fmt.Errorf("setting visibility in queue %q: %w", change.Queue, errNoIDs)
	}
	// The form with an array came with PGMQ 1.8. By id, so that two calls lock in
	// one order.
	rows, err := db.Query(ctx, `
		select changed.msg_id
		from (select id from unnest($2::bigint[]) as ids(id) order by id) as ordered
		cross join lateral pgmq.set_vt($1::text, ordered.id, $3::integer) as changed`,
		change.Queue, change.IDs, ceilSeconds(change.Visibility))
	if err != nil {
		return nil, failed("setting visibility in", change.Queue, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return ids, failed("setting visibility in", change.Queue, err)
}

var errNoIDs = errors.New("no message ids given")
