package docs

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/config"
	"github.com/pawl-dev/pawl/test/kit"
)

// The one table of every default is written from the code: go test ./internal/docs -run Configuration -update
func TestConfigurationHoldsEverySetting(t *testing.T) {
	t.Parallel()
	have, write := kit.Section(t, filepath.Join(root, "docs", "configuration.md"), "settings")
	table := "\n" + strings.TrimSpace(config.Table()) + "\n\n"
	if *update {
		write(table)
		return
	}
	require.Equal(t, table, have, "run: go test ./internal/docs -run Configuration -update")
}
