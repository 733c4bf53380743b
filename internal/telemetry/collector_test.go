package telemetry_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/telemetry"
)

// A figure that fails, or takes too long, is left out; the others are there, and the database is up.
func TestAFigureThatFailsTakesNoOtherAlong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ session, table, lost string }{
		"fails":          {"set lock_timeout = '100ms'", "pawl.dead_letters", "pawl_dead_letters_open q"},
		"takes too long": {"set lock_timeout = 0", "pawl.tasks", "pawl_tasks complete"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			config, err := pgxpool.ParseConfig(url)
			require.NoError(t, err)
			config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, c.session)
				return err
			}
			db, err := pgxpool.NewWithConfig(t.Context(), config)
			require.NoError(t, err)
			t.Cleanup(db.Close)
			for _, sql := range []string{
				`insert into pawl.dead_letters (queue, msg_id, read_count, message, reason) values ('q', 1, 1, '{}', 'bad')`,
				`insert into pawl.stuck_reports (task_id, state, state_since, threshold, snapshot, reported_at)
				 values (gen_random_uuid(), 'pending', now(), '1 minute', '{}', now())`,
			} {
				_, err := db.Exec(t.Context(), sql)
				require.NoError(t, err)
			}
			want := []string{"pawl_dead_letters_open q", "pawl_stuck_tasks pending", "pawl_tasks complete",
				"pawl_queue_missing orchestration_step_results", "pawl_queue_messages orchestration_step_results"}
			registry := prometheus.NewRegistry()
			require.NoError(t, registry.Register(telemetry.NewCollector(db, slog.New(slog.DiscardHandler))))
			holder, err := db.Begin(t.Context())
			require.NoError(t, err)
			defer func() { require.NoError(t, holder.Rollback(t.Context())) }()
			_, err = holder.Exec(t.Context(), "lock table "+c.table)
			require.NoError(t, err)
			found := gather(t, registry)
			require.InDelta(t, 1, found["pawl_database_up"], 0)
			for _, name := range want {
				if name == c.lost {
					require.NotContains(t, found, name)
				} else {
					require.Contains(t, found, name)
				}
			}
		})
	}
}

// flaky is a pool whose queries are slow, and that goes away.
type flaky struct {
	*pgxpool.Pool
	down atomic.Bool
}

func (f *flaky) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if f.down.Load() {
		return nil, errors.New("the server is down")
	}
	if strings.Contains(sql, "pawl.dead_letters") {
		sql += " union all select 'slow', 1 from pg_sleep(1)"
	}
	return f.Pool.Query(ctx, sql, args...)
}

func TestAScrapeSaysWhetherTheDatabaseAnswersIt(t *testing.T) {
	t.Parallel()
	db := &flaky{Pool: pgtest.DB(t)}
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(telemetry.NewCollector(db, slog.New(slog.DiscardHandler))))
	turns := func(up bool) { // long before the figures, which took a second, are read anew
		t.Helper()
		db.down.Store(!up)
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			found := gather(t, registry)
			assert.Equal(c, up, found["pawl_database_up"] == 1)
			assert.Equal(c, up, found["pawl_dead_letters_open slow"] == 1)
		}, 10*time.Second, 50*time.Millisecond)
	}
	turns(true)
	turns(false)
	turns(true)
}
