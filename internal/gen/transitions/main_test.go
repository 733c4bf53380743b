package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/workflow"
)

func TestMigrationIsWhatGoGenerateWrites(t *testing.T) {
	t.Parallel()
	have, err := os.ReadFile("../../../sql/migrations/0002_transitions.sql")
	require.NoError(t, err)
	require.Equal(t, render(workflow.LegalTransitions()), string(have), "run go generate ./workflow")
}
