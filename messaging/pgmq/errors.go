package pgmq

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

var (
	// ErrQueueNotFound is in the chain of an error when the queue does not exist.
	ErrQueueNotFound = errors.New("the queue does not exist (create it with pgmq.create)")
	// ErrNotInstalled is in the chain of an error when the database has no PGMQ,
	// or one too old for the call.
	ErrNotInstalled = errors.New("the database has no PGMQ 1.5 or later (install the extension, or run upstream's SQL file)")
)

// SQLSTATEs that tell of a missing queue or a missing PGMQ.
const (
	codeUndefinedTable    = "42P01"
	codeUndefinedFunction = "42883"
	codeUndefinedSchema   = "3F000"
)

// failed wraps an error of the statement that does what doing says ("reading
// from") on a queue.
func failed(doing, queue string, err error) error {
	if err == nil {
		return nil
	}
	what := fmt.Sprintf("%s queue %q", doing, queue)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		switch pgErr.Code {
		case codeUndefinedTable:
			return fmt.Errorf("%s: %w: %w", what, ErrQueueNotFound, err)
		case codeUndefinedFunction, codeUndefinedSchema:
			return fmt.Errorf("%s: %w: %w", what, ErrNotInstalled, err)
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}
