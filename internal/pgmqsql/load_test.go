package pgmqsql

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLoadPrefersTheUsersFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.sql")
	require.NoError(t, os.WriteFile(file, []byte("select 1"), 0o600))
	t.Setenv(EnvFile, file)
	text, err := Load()
	require.NoError(t, err)
	require.Equal(t, "select 1", text)
}

func TestLoadRefusesACachedFileThatWasChanged(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(EnvFile, "")
	t.Setenv("PAWL_CACHE_DIR", dir)
	_, err := Load()
	require.ErrorIs(t, err, ErrMissing)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "pgmq--"+Version+".sql"), []byte("drop schema pgmq"), 0o600))
	_, err = Load()
	require.ErrorContains(t, err, "sha-256")
}

func TestPackageWithAnotherTextIsRefused(t *testing.T) {
	t.Parallel()
	inner := packed(t, "share/postgresql/extension/pgmq--"+Version+".sql", []byte("something else"))
	_, err := fromPackage(bytes.NewReader(packed(t, "package/dist/pgmq.tar.gz", inner)))
	require.ErrorContains(t, err, "sha-256")
	_, err = fromPackage(bytes.NewReader(packed(t, "package/readme", nil)))
	require.ErrorContains(t, err, "finding pgmq.tar.gz")
}

func packed(t *testing.T, name string, content []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	files := tar.NewWriter(zipped)
	require.NoError(t, files.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: 0o644}))
	_, err := files.Write(content)
	require.NoError(t, err)
	require.NoError(t, files.Close())
	require.NoError(t, zipped.Close())
	return out.Bytes()
}
