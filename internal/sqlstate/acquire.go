package sqlstate

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/puddle/v2"
)

// Acquire borrows a connection for statements, and is how a statement's error is told from that of getting a connection: a
// pool's own Query gives both alike. Each error of it is a [ConnectionError]: nobody there, a login that is refused, a hook
// of the pool's that fails, or that ctx ended before there was a connection.
func Acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, &ConnectionError{Err: err}
	}
	return conn, nil
}

// Closed says whether an error is that of a pool that was closed: it gives no connection any more.
func Closed(err error) bool { return errors.Is(err, puddle.ErrClosedPool) }
