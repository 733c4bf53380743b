package worker_test

import (
	"context"
	"strings"
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

func TestTheListenerMayGoItsOwnWay(t *testing.T) {
	k := newKit(t)
	k.queue("ear_queue")
	own := k.pool.Config().ConnString()
	separator := "?"
	if strings.Contains(own, "?") {
		separator = "&"
	}
	handle := func(config worker.Config) *worker.Worker {
		w := k.worker(config, "ear_queue")
		worker.Handle(w, "h", func(context.Context, worker.Step[any]) (any, error) { return nil, nil })
		return w
	}
	w := handle(worker.Config{ListenerURL: own + separator + "application_name=ear&pool_max_conns=3"})
	k.start(w)
	k.eventually(func() bool {
		return k.count(`select count(*) from pg_stat_activity where datname = current_database() and application_name = 'ear'`) == 1
	})
	require.NoError(t, w.Stop(t.Context()))
	require.ErrorContains(t, handle(worker.Config{ListenerURL: "postgres://:x"}).Start(t.Context()), "reading ListenerURL")
	_, err := worker.New(worker.Config{Pool: k.pool, Queues: []worker.Queue{{Name: "ear_queue"}}, ListenerURL: own, NoListen: true})
	require.ErrorContains(t, err, "ListenerURL or NoListen, not both")
}
