package pgtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/internal/pgtest"
)

func TestDBHasEverythingAndIsTheTestsOwn(t *testing.T) {
	t.Parallel()
	first, second := pgtest.DB(t), pgtest.DB(t)
	require.NoError(t, migrate.Check(t.Context(), first))
	_, err := first.Exec(t.Context(), `create table only_here ()`)
	require.NoError(t, err)
	var there bool
	require.NoError(t, second.QueryRow(t.Context(), `select to_regclass('only_here') is not null`).Scan(&there))
	require.False(t, there)
	require.NoError(t, second.QueryRow(t.Context(), `select to_regclass('pgmq.meta') is not null`).Scan(&there))
	require.True(t, there)
}

func TestDatabasesAreClonedInParallel(t *testing.T) {
	t.Parallel()
	for range 8 {
		t.Run("clone", func(t *testing.T) {
			t.Parallel()
			require.NoError(t, migrate.Check(t.Context(), pgtest.DB(t)))
		})
	}
}

func TestTxIsRolledBack(t *testing.T) {
	t.Parallel()
	for range 3 {
		t.Run("same name each time", func(t *testing.T) {
			t.Parallel()
			_, err := pgtest.Tx(t).Exec(t.Context(), `create table once (a int primary key)`)
			require.NoError(t, err)
		})
	}
}

func TestDatabaseIsDroppedAfterItsTest(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("user", func(t *testing.T) {
		require.NoError(t, pgtest.DB(t).QueryRow(t.Context(), `select current_database()`).Scan(&name))
	})
	var there bool
	err := pgtest.Tx(t).QueryRow(t.Context(), `select exists (select from pg_database where datname = $1)`, name).Scan(&there)
	require.NoError(t, err)
	require.False(t, there)
}
