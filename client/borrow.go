package client

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pawl-dev/pawl/internal/sqlstate"
)

// borrow does something on a connection of the pool. All that the client says to the database goes through it: what keeps it
// from having a connection is told from the answer to a statement, and an error brings the advice that there is.
func (c *Client) borrow(ctx context.Context, do func(conn *pgxpool.Conn) error) error {
	if c.closed() { // the pool may be another's, and open
		return ErrClosed
	}
	conn, err := sqlstate.Acquire(ctx, c.pool)
	switch {
	case err != nil && c.closed() && ctx.Err() == nil: // meanwhile
		return ErrClosed
	case err != nil:
		return sqlstate.Explain(err)
	}
	defer conn.Release()
	if err = do(conn); err != nil && sqlstate.Of(err) == "" && ctx.Err() == nil && !conn.Conn().IsClosed() {
		return &ownError{err}
	}
	return sqlstate.Explain(err)
}

// closed says whether Close was called.
func (c *Client) closed() bool { return c.hub.life.Err() != nil }

// ownError is an error of this side's, on a connection that works: what cannot be encoded or read. It comes again.
type ownError struct{ err error }

// Error implements error.
func (e *ownError) Error() string { return e.err.Error() }

// Unwrap gives the error.
func (e *ownError) Unwrap() error { return e.err }

// hopeless says whether asking again will not help: there is no such database, table or function, no right to log in or to
// read, the pool was closed, somebody has to change a setting, or the error is this side's own.
func hopeless(err error) bool {
	code := sqlstate.Of(err)
	return sqlstate.Closed(err) || sqlstate.Absent(code) || sqlstate.Advice(code) != "" || errors.As(err, new(*ownError))
}

// list asks for rows.
func list[T any](ctx context.Context, c *Client, read pgx.RowToFunc[T], sql string, arguments ...any) (all []T, err error) {
	err = c.borrow(ctx, func(conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, sql, arguments...)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, read)
		return err
	})
	return all, err
}
