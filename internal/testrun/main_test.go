package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
)

func TestRunGivesACommandAServerAndItsExitCodeBack(t *testing.T) {
	t.Setenv(pgtest.EnvURL, "")
	seen := filepath.Join(t.TempDir(), "url")
	code, err := run([]string{"sh", "-c", `printf %s "$` + pgtest.EnvURL + `" >"$1"; exit 3`, "sh", seen})
	require.NoError(t, err)
	require.Equal(t, 3, code)
	url, err := os.ReadFile(seen)
	require.NoError(t, err)
	require.NotEmpty(t, url)
	_, err = pgx.Connect(t.Context(), string(url))
	require.ErrorContains(t, err, "connection refused", "the server has stopped")
}

func TestRunUsesAServerThatIsGiven(t *testing.T) {
	t.Setenv(pgtest.EnvURL, "postgres://given")
	code, err := run([]string{"sh", "-c", `test "$` + pgtest.EnvURL + `" = postgres://given`})
	require.NoError(t, err)
	require.Zero(t, code)
}

func TestRunWithoutACommandSaysWhatToGive(t *testing.T) {
	t.Parallel()
	_, err := run(nil)
	require.ErrorContains(t, err, "go test")
}
