package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/sqlstate"
)

func TestAPoolerThatMixesUpStatementsIsToldOf(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"26000", "42P05"} {
		bare := fmt.Errorf("listing queues: %w", &pgconn.PgError{Code: code})
		for _, err := range []error{bare, sqlstate.Explain(bare)} {
			require.Equal(t, 1, strings.Count(classify(err).Error(), "default_query_exec_mode=exec"), err)
		}
	}
}

func TestAConnectionThatCannotBeHadIsNoDatabase(t *testing.T) {
	t.Parallel()
	for _, err := range []error{&pgconn.PgError{Code: "22023"}, context.DeadlineExceeded} {
		require.Equal(t, ExitUnavailable, classify(fmt.Errorf("listing tasks: %w", &sqlstate.ConnectionError{Err: err})).code)
	}
}
