package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/store"
)

// SQL asks the same of a code when a claim raises; the two must never disagree.
func TestClassesAgreeWithTheDatabase(t *testing.T) {
	t.Parallel()
	tx := pgtest.Tx(t)
	codes := []string{"40001", "40P01", "40002", "55P03", "55000", "55006", "25006", "25001", "42883", "42P01", "42703", "42601", "3F000",
		"57000", "57014", "57P01", "57P02", "57P03", "57P05", "53000", "53100", "53200", "53300", "53400", "08000", "08006", "08P01",
		"22P02", "22003", "22023", "23505", "23514", "P0001", "PW001", "PW010", "PW016", "XX000", "54001", "58030", "54000"}
	for _, code := range codes {
		var infrastructure bool
		require.NoError(t, tx.QueryRow(t.Context(), `select pawl.is_infrastructure_error($1)`, code).Scan(&infrastructure))
		err := fmt.Errorf("working: %w", &pgconn.PgError{Code: code})
		require.Equal(t, infrastructure, store.Classify(err).Infrastructure(), code)
		require.Equal(t, code, store.Code(err))
	}
}

func TestErrorsWithoutACodeAreNeverTheMessages(t *testing.T) {
	t.Parallel()
	for _, err := range []error{context.Canceled, context.DeadlineExceeded, io.ErrUnexpectedEOF, errors.New("conn closed")} {
		require.True(t, store.Classify(err).Infrastructure(), err)
		require.Empty(t, store.Code(err))
	}
	require.Equal(t, store.Timeout, store.Classify(fmt.Errorf("reading: %w", context.DeadlineExceeded)))
	require.Equal(t, store.Unavailable, store.Classify(context.Canceled))
}

func TestReasonsNameTheCode(t *testing.T) {
	t.Parallel()
	require.Equal(t, "raised PW001: no", store.Reason(fmt.Errorf("working: %w", &pgconn.PgError{Code: "PW001", Message: "no"})))
	require.Equal(t, "broken", store.Reason(errors.New("broken")))
}
