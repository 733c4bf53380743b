package worker_test

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/worker"
)

// What a pool's hook raises on a new connection says nothing of the report that wanted one.
func TestAPoolWhoseHookFailsCostsNoResult(t *testing.T) {
	k := newKit(t)
	task := k.submit("h", "hook_queue", nil)[0]
	var fails atomic.Bool
	config := k.pool.Config()
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if !fails.Load() {
			return nil
		}
		_, err := conn.Exec(ctx, `set role there_is_no_such_role`) // 22023: a report's data are refused so
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	log := new(lockedBuffer)
	w := k.worker(worker.Config{Pool: pool, NoListen: true, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, "hook_queue")
	entered, release := make(chan struct{}), make(chan struct{})
	worker.Handle(w, "h", func(context.Context, worker.Step[any]) (any, error) {
		close(entered)
		<-release
		return "done", nil
	})
	k.start(w)
	receive(k, entered, "the handler")
	fails.Store(true)
	pool.Reset()
	close(release)
	const replaced = "the database refuses the result"
	k.eventually(func() bool {
		return strings.Contains(log.String(), "call=report") || strings.Contains(log.String(), replaced)
	})
	fails.Store(false)
	require.Equal(t, `"done"`, k.await(task, "complete").Result)
	require.NotContains(t, log.String(), replaced)
}
