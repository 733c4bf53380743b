package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/sqlstate"
	"github.com/pawl-dev/pawl/internal/store"
)

// SQL asks the same of a code when a claim raises; the two must never disagree.
func TestClassesAgreeWithTheDatabase(t *testing.T) {
	t.Parallel()
	tx := pgtest.Tx(t)
	codes := []string{"40001", "40P01", "40002", "55P03", "55000", "55006", "25006", "25001", "42883", "42P01", "42703", "42601", "3F000",
		"57000", "57014", "57P01", "57P02", "57P03", "57P05", "53000", "53100", "53200", "53300", "53400", "08000", "08006", "08P01",
		"58000", "58030", "58P01", "26000", "42P05", "25P03", "25P04",
		"22P02", "22003", "22023", "23505", "23514", "P0001", "PW001", "PW010", "PW016", "XX000", "XX001", "54001", "54000", "28P01", "42501"}
	for _, code := range codes {
		var infrastructure bool
		require.NoError(t, tx.QueryRow(t.Context(), `select pawl.is_infrastructure_error($1)`, code).Scan(&infrastructure))
		err := fmt.Errorf("working: %w", &pgconn.PgError{Code: code})
		require.Equal(t, infrastructure, store.Classify(err).Infrastructure(), code)
		require.Equal(t, code, sqlstate.Of(err))
	}
}

func TestErrorsWithoutACodeAreNeverTheMessages(t *testing.T) {
	t.Parallel()
	for _, err := range []error{context.Canceled, context.DeadlineExceeded, io.ErrUnexpectedEOF, errors.New("conn closed")} {
		require.True(t, store.Classify(err).Infrastructure(), err)
		require.Empty(t, sqlstate.Of(err))
	}
	require.Equal(t, store.Timeout, store.Classify(fmt.Errorf("reading: %w", context.DeadlineExceeded)))
	require.Equal(t, store.Unavailable, store.Classify(context.Canceled))
}

// A password that was rotated, a database that is gone, a right that was taken away: no message has anything to do with it.
func TestALoginThatIsRefusedIsNeverTheMessages(t *testing.T) {
	t.Parallel()
	pool := pgtest.DB(t)
	database, role := pool.Config().ConnConfig.Database, pool.Config().ConnConfig.Database+"_nobody"
	for _, statement := range []string{`create role "` + role + `" nologin password 'known'`, `revoke connect on database "` + database + `" from public`} {
		_, err := pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		_, err := pool.Exec(context.Background(), `drop role "`+role+`"`)
		require.NoError(t, err)
	})
	login := func(change func(config *pgx.ConnConfig)) error {
		config := pool.Config().ConnConfig.Copy()
		change(config)
		_, err := pgx.ConnectConfig(t.Context(), config)
		return fmt.Errorf("reading: %w", err)
	}
	errs := map[string]error{
		"3D000": login(func(c *pgx.ConnConfig) { c.Database = "there_is_no_such_database" }),
		"28P01": login(func(c *pgx.ConnConfig) { c.User, c.Password = role, "old" }),
		"28000": login(func(c *pgx.ConnConfig) { c.User, c.Password = role, "known" }),
		"22023": login(func(c *pgx.ConnConfig) { c.RuntimeParams["lock_timeout"] = "soon" }),
	}
	_, err := pool.Exec(t.Context(), `alter role "`+role+`" login`)
	require.NoError(t, err)
	errs["42501"] = login(func(c *pgx.ConnConfig) { c.User, c.Password = role, "known" })
	for code, err := range errs {
		require.Equal(t, store.Unavailable, store.Classify(err), "%s: %s", code, err)
		require.Equal(t, code, sqlstate.Of(err), err)
	}
	dial := login(func(c *pgx.ConnConfig) {
		c.DialFunc = func(context.Context, string, string) (net.Conn, error) { return nil, context.DeadlineExceeded }
	})
	require.Equal(t, store.Unavailable, store.Classify(dial), "a message cannot make a dial time out")
}

// What is internal to the server may be one message's doing: it is no dead letter at once, and does not stay for ever.
func TestWhatOneMessageMayHaveCausedEndsAfterItsDeliveries(t *testing.T) {
	t.Parallel()
	for code, doubtful := range map[string]bool{"XX000": true, "XX002": true, "58030": true, "57014": true, "25P04": true, "57P02": true,
		"26000": false, "42P05": false, "53100": false, "55P03": false, "25006": false} {
		class := store.Classify(&pgconn.PgError{Code: code})
		require.NotEqual(t, store.Permanent, class, code)
		require.Equal(t, doubtful, class.Doubtful(), code)
	}
}

func TestReasonsNameTheCode(t *testing.T) {
	t.Parallel()
	require.Equal(t, "raised PW001: no", store.Reason(fmt.Errorf("working: %w", &pgconn.PgError{Code: "PW001", Message: "no"})))
	require.Equal(t, "broken", store.Reason(errors.New("broken")))
}
