package pgmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Queue is a row of PGMQ's list of queues.
type Queue struct {
	Name        string
	Partitioned bool
	Unlogged    bool
	CreatedAt   time.Time
}

// Create makes a queue and its archive. A queue that exists is left as it is.
// Creates of one name by several sessions at once wait for each other.
func Create(ctx context.Context, db DB, queue string) error {
	if err := ValidateQueueName(queue); err != nil {
		return fmt.Errorf("creating queue: %w", err)
	}
	_, err := db.Exec(ctx, `select pgmq.create($1::text)`, queue)
	return failed("creating", queue, err)
}

// Drop removes a queue, its archive and all their messages, and says whether
// there was such a queue. It waits for every open reader of the queue.
func Drop(ctx context.Context, db DB, queue string) (existed bool, err error) {
	if err := ValidateQueueName(queue); err != nil {
		return false, fmt.Errorf("dropping queue: %w", err)
	}
	err = db.QueryRow(ctx, `select dropped from pgmq.drop_queue($1::text) as dropped`, queue).Scan(&existed)
	return existed, failed("dropping", queue, err)
}

// Purge removes the messages of a queue, but not its archive, and returns how
// many there were. PGMQ truncates the table: it waits for every open reader, and
// every reader waits for it until the transaction ends.
func Purge(ctx context.Context, db DB, queue string) (count int64, err error) {
	if err := ValidateQueueName(queue); err != nil {
		return 0, fmt.Errorf("purging queue: %w", err)
	}
	err = db.QueryRow(ctx, `select purged from pgmq.purge_queue($1::text) as purged`, queue).Scan(&count)
	return count, failed("purging", queue, err)
}

// List returns all queues by name, also those with names that this package
// would refuse.
func List(ctx context.Context, db DB) ([]Queue, error) {
	rows, err := db.Query(ctx, `
		select queue_name::text, is_partitioned, is_unlogged, created_at
		from pgmq.list_queues()
		order by queue_name`)
	if err != nil {
		return nil, listFailed(err)
	}
	queues, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (q Queue, err error) {
		return q, row.Scan(&q.Name, &q.Partitioned, &q.Unlogged, &q.CreatedAt)
	})
	if err != nil {
		return nil, listFailed(err)
	}
	return queues, nil
}

func listFailed(err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && (pgErr.Code == codeUndefinedFunction || pgErr.Code == codeUndefinedSchema) {
		err = fmt.Errorf("%w: %w", ErrNotInstalled, err)
	}
	return fmt.Errorf("listing queues: %w", err)
}
