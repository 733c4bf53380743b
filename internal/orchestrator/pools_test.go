package orchestrator

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/actors"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/sqlstate"
	"github.com/pawl-dev/pawl/internal/store"
)

// R13: a statement ends while its messages are still its own; nobody waits for a lock longer than 5 s.
func TestStatementsEndWithinAThirdOfTheVisibilityTimeout(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	for _, visibility := range []time.Duration{0, 3 * time.Second, time.Minute} {
		config := Config{DatabaseURL: url, Settings: actors.Settings{VisibilityTimeout: visibility}, WorkerToken: "token"}.withDefaults()
		pools, err := openPools(t.Context(), config)
		require.NoError(t, err)
		for _, pool := range []*pgxpool.Pool{pools.work, pools.calls} {
			var statement, lock int64
			require.NoError(t, pool.QueryRow(t.Context(), `select extract(epoch from current_setting('statement_timeout')::interval) * 1000,
				extract(epoch from current_setting('lock_timeout')::interval) * 1000`).Scan(&statement, &lock))
			require.Positive(t, statement)
			require.Less(t, statement, config.VisibilityTimeout.Milliseconds()/3)
			require.EqualValues(t, 5000, lock)
		}
		pools.close()
	}
}

// What a new connection refuses is about no message, whatever its code: the statement that wanted it was never sent.
func TestAConnectionThatCannotBeSetUpIsNoMessagesFault(t *testing.T) {
	t.Parallel()
	pool, err := openPool(t.Context(), Config{DatabaseURL: pgtest.URL(t)}.withDefaults(), 1, `set lock_timeout = 'soon'`)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	_, err = pool.Exec(t.Context(), `select 1`)
	require.Equal(t, "22023", sqlstate.Of(err))
	require.Equal(t, store.Unavailable, store.Classify(err))
}

// A server that takes connections and says nothing is one that cannot be reached, before the time of what wanted it is over.
func TestAServerThatDoesNotAnswerIsNoMessagesFault(t *testing.T) {
	t.Parallel()
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // the kernel takes connections that nobody accepts
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, silent.Close()) })
	for _, setting := range []string{"", "&connect_timeout=60"} {
		config := Config{DatabaseURL: "postgres://pawl@" + silent.Addr().String() + "/none?sslmode=disable" + setting,
			Settings: actors.Settings{VisibilityTimeout: 7 * time.Second}}.withDefaults()
		pool, err := openPool(t.Context(), config, 1, `select 1`)
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		ctx, cancel := context.WithTimeout(t.Context(), config.VisibilityTimeout/2)
		defer cancel()
		_, err = pool.Exec(ctx, `select 1`)
		require.NoError(t, ctx.Err())
		require.Equal(t, store.Unavailable, store.Classify(err))
	}
}
