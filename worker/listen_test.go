package worker_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/worker"
)

// All of a worker's connections are made with the pool's hooks: one may bring the password of the hour.
func TestTheListenerConnectsWithThePoolsHooks(t *testing.T) {
	k := newKit(t)
	k.queue("hooked_queue")
	config := k.pool.Config()
	name := config.ConnConfig.Database
	config.ConnConfig.Database = "no_such_database"
	config.BeforeConnect = func(_ context.Context, own *pgx.ConnConfig) error {
		own.Database = name
		return nil
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	w, err := worker.New(worker.Config{Pool: pool, Queues: []worker.Queue{{Name: "hooked_queue"}}})
	require.NoError(t, err)
	worker.Handle(w, "h", func(context.Context, worker.Step[any]) (any, error) { return nil, nil })
	k.start(w)
	k.eventually(func() bool {
		return k.count(`select count(*) from pg_stat_activity where datname = current_database() and query ilike 'listen%'`) > 0
	})
	require.NoError(t, w.Stop(t.Context()))
}
