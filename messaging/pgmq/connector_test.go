package pgmq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// hooked is a pool that leads nowhere without its hooks.
func hooked(t *testing.T, change func(config *pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config := testPool(t).Config()
	name := config.ConnConfig.Database
	config.ConnConfig.Database = "no_such_database"
	config.BeforeConnect = func(_ context.Context, own *pgx.ConnConfig) error {
		own.Database = name
		return nil
	}
	change(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func TestAListenerConnectsAsItsPoolDoes(t *testing.T) {
	t.Parallel()
	pool := hooked(t, func(config *pgxpool.Config) {
		config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "set application_name = 'after connect'")
			return err
		}
	})
	config := often(pool)
	config.Connect = pgmq.Connector(pool.Config())
	l := listen(t, config)
	require.Eventually(t, l.Proven, soon, time.Millisecond)
	var count int
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database()
		and application_name = 'after connect' and query ilike 'listen%'`).Scan(&count))
	require.Equal(t, 1, count)
}

func TestWhatAPoolsHooksRefuseIsRefused(t *testing.T) {
	t.Parallel()
	refusal := errors.New("no password today")
	before := hooked(t, func(config *pgxpool.Config) {
		config.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return refusal }
	})
	_, err := pgmq.Connector(before.Config())(t.Context())
	require.ErrorIs(t, err, refusal)

	var made *pgx.Conn
	after := hooked(t, func(config *pgxpool.Config) {
		config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error { made = conn; return refusal }
	})
	_, err = pgmq.Connector(after.Config())(t.Context())
	require.ErrorIs(t, err, refusal)
	require.True(t, made.IsClosed())
}

func TestAListenerHearsAlthoughItsPoolTakesNotificationsItself(t *testing.T) {
	t.Parallel()
	pool := hooked(t, func(config *pgxpool.Config) {
		config.ConnConfig.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {}
	})
	config := often(pool)
	config.Connect = pgmq.Connector(pool.Config())
	l := listen(t, config)
	require.Eventually(t, l.Proven, soon, time.Millisecond)
}
