package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/test/cluster"
)

func TestThePlanIsWrittenBeforeItRunsAndReplaysItself(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plan.jsonl")
	drawn := &soak{options: options{duration: 150 * time.Second, round: time.Minute, rate: 5, seed: 7, planOut: file}}
	require.NoError(t, drawn.draw())
	require.Len(t, drawn.plans, 3)
	require.Len(t, drawn.plans[0].Events, 300)
	require.Equal(t, 30*time.Second, drawn.plans[2].Duration())

	replayed := &soak{options: options{plan: file}}
	require.NoError(t, replayed.draw())
	require.Equal(t, drawn.plans, replayed.plans)
	require.Equal(t, drawn.seed, replayed.seed)

	require.Error(t, (&soak{options: options{plan: file + ".missing"}}).draw())
}

// A run that reaches nothing proves nothing.
func TestARunThatReachesNothingFails(t *testing.T) {
	t.Parallel()
	stage := &cluster.Stage{}
	report := stage.NewFire(cluster.NewHistory(), nil).Report(cluster.Verdict{})
	require.NotEmpty(t, report.Missing)
	require.True(t, report.Failed())
}
