package worker

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
)

// While nobody may log in, no report is at fault: none is replaced by a failure or set aside.
func TestALoginThatIsRefusedRefusesNoReport(t *testing.T) {
	t.Parallel()
	pool := pgtest.DB(t)
	for name, change := range map[string]func(c *pgx.ConnConfig){
		"a password that was changed": func(c *pgx.ConnConfig) { c.Password = "old" },
		"a database that is gone":     func(c *pgx.ConnConfig) { c.Database = "there_is_no_such_database" },
		"a setting of the URL":        func(c *pgx.ConnConfig) { c.RuntimeParams["lock_timeout"] = "soon" }, // 22023
		"a server that does not answer": func(c *pgx.ConnConfig) {
			c.DialFunc = func(context.Context, string, string) (net.Conn, error) { return nil, context.DeadlineExceeded }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := pool.Config().ConnConfig.Copy()
			change(config)
			_, err := pgx.ConnectConfig(t.Context(), config)
			require.Error(t, err)
			err = explain(fmt.Errorf("reporting: %w", err))
			_, refused := isRefused(err)
			_, data := isAboutData(err)
			require.False(t, refused || data || isLocked(err), err)
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
