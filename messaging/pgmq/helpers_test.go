package pgmq_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

var trialCount atomic.Int64

func trialURL(t testing.TB) string {
	ctx := t.Context()
	name := fmt.Sprintf("msgtrial_%d_%d", os.Getpid(), trialCount.Add(1))
	admin, err := pgx.Connect(ctx, "postgres://postgres@127.0.0.1:55001/postgres")
	require.NoError(t, err)
	defer admin.Close(ctx)
	_, err = admin.Exec(ctx, "create database "+name)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.Background()
		admin, err := pgx.Connect(ctx, "postgres://postgres@127.0.0.1:55001/postgres")
		require.NoError(t, err)
		defer admin.Close(ctx)
		_, err = admin.Exec(ctx, "drop database "+name+" with (force)")
		require.NoError(t, err)
	})
	url := "postgres://postgres@127.0.0.1:55001/" + name
	c, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	defer c.Close(ctx)
	sql, err := os.ReadFile("/tmp/pgmq.sql")
	require.NoError(t, err)
	_, err = c.Exec(ctx, string(sql))
	require.NoError(t, err)
	return url
}

func testPool(t testing.TB) *pgxpool.Pool {
	p, err := pgxpool.New(t.Context(), trialURL(t))
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// soon is the deadline of what a busy machine may take long for.
const soon = 60 * time.Second
