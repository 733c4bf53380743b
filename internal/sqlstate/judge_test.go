package sqlstate

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

func TestALeavingServerIsToldFromOneThatStays(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"57P01", "57P02", "57P03", "57P05", "08006", "08P01"} {
		require.True(t, Leaving(code), code)
	}
	for _, code := range []string{"", "5", "57000", "57014", "57P04", "53300", "28P01", "P0001"} {
		require.False(t, Leaving(code), code)
	}
}

func TestWhatIsSaidBeforeAStatementIsAboutNoStatement(t *testing.T) {
	t.Parallel()
	refused := fmt.Errorf("asking: %w", &pgconn.PgError{Code: "22023"})
	require.Equal(t, "22023", OfStatement(refused))
	unready := fmt.Errorf("asking: %w", &ConnectionError{Err: refused})
	require.True(t, Connecting(unready))
	require.Empty(t, OfStatement(unready))
	require.Equal(t, "22023", Of(unready))
	require.ErrorIs(t, unready, refused)
	require.Equal(t, "asking: "+refused.Error(), unready.Error())
	require.Empty(t, Of(errors.New("conn closed")))
}

func TestMixedUpStatementsNameTheSetting(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"26000", "42P05"} {
		err := &pgconn.PgError{Code: code}
		require.ErrorContains(t, Explain(err), "default_query_exec_mode=exec")
		require.ErrorIs(t, Explain(err), err)
		told := fmt.Errorf("starting: %w", Explain(err))
		require.Equal(t, told, Explain(told), "once is enough")
	}
	require.NoError(t, Explain(nil))
	require.Equal(t, "conn closed", Explain(errors.New("conn closed")).Error())
}
