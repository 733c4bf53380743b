package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The defects themselves must not rot: each still fits its file.
func TestEveryDefectFitsItsFile(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, d := range defects() {
		require.False(t, seen[d.What], "twice: %s", d.What)
		seen[d.What] = true
		text, err := os.ReadFile(filepath.Join("../..", d.File))
		require.NoError(t, err)
		mutated, err := d.mutate(string(text))
		if err != nil {
			t.Errorf("%s: %s: %v", d.File, d.What, err)
			continue
		}
		require.NotEqual(t, string(text), mutated, d.What)
		require.NotEmpty(t, d.Tests, d.What)
	}
	require.GreaterOrEqual(t, len(seen), 40)
}
