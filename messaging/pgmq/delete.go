package pgmq

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Delete removes messages from a queue and returns the ids of those that were
// there. It does not ask who holds a message: a worker whose visibility timeout
// is over deletes the message that another one works on.
func Delete(ctx context.Context, db DB, queue string, ids ...int64) ([]int64, error) {
	return remove(ctx, db, removal{
		doing: "deleting from", queue: queue, ids: ids,
		sql: `select removed.msg_id from pgmq.delete($1::text, $2::bigint[]) as removed(msg_id)`,
	})
}

// Archive moves messages from a queue to its archive and returns the ids of
// those that were there. Like Delete it does not ask who holds a message.
func Archive(ctx context.Context, db DB, queue string, ids ...int64) ([]int64, error) {
	return remove(ctx, db, removal{
		doing: "archiving from", queue: queue, ids: ids,
		sql: `select removed.msg_id from pgmq.archive($1::text, $2::bigint[]) as removed(msg_id)`,
	})
}

type removal struct {
	doing, queue, sql string
	ids               []int64
}

func remove(ctx context.Context, db DB, r removal) ([]int64, error) {
	if err := ValidateQueueName(r.queue); err != nil {
		return nil, fmt.Errorf("%s queue: %w", r.doing, err)
	}
	if len(r.ids) == 0 {
		return nil, fmt.Errorf("%s queue %q: %w", r.doing, r.queue, errNoIDs)
	}
	rows, err := db.Query(ctx, r.sql, r.queue, r.ids)
	if err != nil {
		return nil, failed(r.doing, r.queue, err)
	}
	removed, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return removed, failed(r.doing, r.queue, err)
}
