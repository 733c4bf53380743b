package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/config"
)

const (
	settingsBegin = "<!-- begin settings -->\n\n"
	settingsEnd   = "\n<!-- end settings -->"
)

// The one table of every default is written from the code: go test ./internal/docs -run Configuration -update
func TestConfigurationHoldsEverySetting(t *testing.T) {
	t.Parallel()
	file := filepath.Join(root, "docs", "configuration.md")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), settingsBegin)
	require.True(t, ok)
	written, after, ok := strings.Cut(rest, settingsEnd)
	require.True(t, ok)
	table := strings.TrimSpace(config.Table()) + "\n"
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(before+settingsBegin+table+settingsEnd+after), 0o644)) //nolint:gosec // a document
		return
	}
	require.Equal(t, table, written, "run: go test ./internal/docs -run Configuration -update")
}
