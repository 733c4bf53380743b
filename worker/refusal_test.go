package worker

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
)

// While no connection is to be had, no report is at fault: none is replaced by a failure or set aside.
func TestAConnectionThatCannotBeHadRefusesNoReport(t *testing.T) {
	t.Parallel()
	db := pgtest.DB(t)
	for name, change := range map[string]func(c *pgxpool.Config){
		"a password that was changed": func(c *pgxpool.Config) { c.ConnConfig.Password = "old" },
		"a database that is gone":     func(c *pgxpool.Config) { c.ConnConfig.Database = "there_is_no_such_database" },
		"a setting of the URL":        func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["lock_timeout"] = "soon" }, // 22023
		"a hook that fails": func(c *pgxpool.Config) {
			c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, `set role there_is_no_such_role`) // 22023
				return err
			}
		},
		"a server that does not answer": func(c *pgxpool.Config) {
			c.ConnConfig.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := db.Config()
			change(config)
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err = call(ctx, pool, new(int), `select 1`)
			require.Error(t, err)
			err = fmt.Errorf("reporting: %w", err)
			_, refused := isRefused(err)
			_, data := isAboutData(err)
			require.False(t, refused || data || isDoubtful(err) || isLocked(err), err)
		})
	}
}

func TestWhatAReportCausesIsToldFromTheDatabasesState(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"23514", "P0001", "22P02", "54000", "PW016", "XX000", "42703"} {
		_, refused := isRefused(&pgconn.PgError{Code: code})
		require.True(t, refused, code)
	}
	for _, code := range []string{"40001", "40002", "55P03", "57014", "57P01", "58030", "53300", "08006", "25006", "26000", "42P05",
		"28000", "3F000", "42501", "42883", "42P01", "PW010"} {
		_, refused := isRefused(&pgconn.PgError{Code: code})
		require.False(t, refused, code)
	}
	_, refused := isRefused(context.Canceled)
	require.False(t, refused)
	require.True(t, isLocked(context.DeadlineExceeded))
}

func TestAPoolerThatMixesUpStatementsIsToldOf(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"26000", "42P05"} {
		require.ErrorContains(t, explain(&pgconn.PgError{Code: code}), "default_query_exec_mode=exec")
	}
	require.ErrorContains(t, explain(&pgconn.PgError{Code: "42501"}), "grant")
	require.ErrorContains(t, explain(&pgconn.PgError{Code: "3F000"}), "pawl migrate")
}
