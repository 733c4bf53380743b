package pgtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// MaxConns of a pool that DB returns.
const MaxConns = 8

// timeout of everything that the package itself does: far beyond what a busy machine needs.
const timeout = 2 * time.Minute

// DB returns a pool on a database of the test's own, dropped afterwards.
func DB(t testing.TB) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(URL(t))
	require.NoError(t, err)
	config.MaxConns = MaxConns
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { closePool(t, pool) })
	return pool
}

// closePool does not wait forever for a connection that the test did not give back.
func closePool(t testing.TB, pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() { pool.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Errorf("the test still holds %d connections of its pool", pool.Stat().AcquiredConns())
	}
}

// URL returns the address of a database of the test's own, with PGMQ and all of Pawl's SQL, dropped afterwards.
func URL(t testing.TB) string {
	t.Helper()
	return create(t, (*server).clone)
}

// EmptyURL returns the address of an empty database of the test's own, dropped afterwards.
func EmptyURL(t testing.TB) string {
	t.Helper()
	return create(t, (*server).empty)
}

func create(t testing.TB, how func(*server, context.Context) (string, error)) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	s, err := connect()
	require.NoError(t, err)
	name, err := how(s, ctx)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		require.NoError(t, s.drop(ctx, name))
	})
	return s.url(name)
}

// Tx returns a transaction (READ COMMITTED) that is rolled back after the test. Nobody else uses its database
// meanwhile, so tests with the same keys do not wait for one another; sequences keep what earlier tests took.
func Tx(t testing.TB) pgx.Tx {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	s, err := connect()
	require.NoError(t, err)
	name, err := s.borrow(ctx)
	require.NoError(t, err)
	conn, err := pgx.Connect(ctx, s.url(name))
	require.NoError(t, err)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		err := tx.Rollback(ctx)
		switch {
		case err == nil, errors.Is(err, pgx.ErrTxClosed) && conn.IsClosed():
			s.giveBack(name)
		case errors.Is(err, pgx.ErrTxClosed):
			t.Errorf("the test ended the transaction of pgtest.Tx itself: use pgtest.DB")
		default:
			t.Errorf("rolling back: %v", err)
		}
		_ = conn.Close(ctx) // the server forgets it either way
	})
	return tx
}
