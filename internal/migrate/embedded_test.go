package migrate_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/migrate"
	"github.com/pawl-dev/pawl/internal/pgmqsql"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/sql"
)

func TestFunctionsHaveTheNumberThatTheirDigestWasRecordedWith(t *testing.T) {
	t.Parallel()
	digest, err := migrate.FunctionsDigest(sql.Files)
	require.NoError(t, err)
	recorded, err := sql.Files.ReadFile("functions.sum")
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%d %s\n", sql.FunctionsVersion, digest), string(recorded),
		"functions or triggers were changed under a number that databases already have: run `make generate`")
}

func TestEmbeddedSQLIsAppliedAndRepeated(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.EmptyURL(t))
	report, err := migrate.Up(t.Context(), conn, migrate.Config{PGMQ: pgmqsql.Ensure})
	require.NoError(t, err)
	require.True(t, report.Functions)
	require.NoError(t, migrate.Check(t.Context(), conn))

	// Functions of a higher number over what is there: every file must be repeatable.
	report, err = migrate.Up(t.Context(), conn, migrate.Config{FunctionsVersion: sql.FunctionsVersion + 1})
	require.NoError(t, err)
	require.True(t, report.Functions)
	require.Empty(t, report.Migrations)
}
