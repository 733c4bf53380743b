package devpg

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFindTakesAVersionThatIsNewEnough(t *testing.T) {
	t.Parallel()
	found, err := find()
	require.NoError(t, err)
	version, err := found.version()
	require.NoError(t, err)
	require.GreaterOrEqual(t, version, MinVersion)
}

func TestNewestComparesNumbers(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, version := range []string{"9", "15", "100", "17"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, version, "bin"), 0o755))
	}
	var versions []string
	for _, dir := range newest(filepath.Join(root, "*", "bin")) {
		versions = append(versions, filepath.Base(filepath.Dir(dir)))
	}
	require.Equal(t, []string{"100", "17", "15", "9"}, versions)
}
