package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/workflow"
)

// counters are what a task knows of its steps without reading them.
type counters struct{ Open, Active, Held, Retrying, Waiting, Failed int }

// openState follows from the counters of a task whose steps are built.
func openState(c counters) workflow.TaskState {
	switch {
	case c.Open == 0:
		return workflow.TaskEvaluatingResults
	case c.Active > 0:
		return workflow.TaskStepsInProcess
	case c.Held > 0:
		return workflow.TaskEnqueuingSteps
	case c.Retrying > 0:
		return workflow.TaskWaitingForRetry
	case c.Waiting > 0:
		return workflow.TaskWaitingForDependencies
	case c.Failed > 0:
		return workflow.TaskBlockedByFailures
	}
	return workflow.TaskEnqueuingSteps
}

// The rule that makes a task's open state from its counters stands in SQL; here it is said once more, to be compared.
func TestDatabaseEvaluatesCountersAlike(t *testing.T) {
	t.Parallel()
	tx := pgtest.Tx(t)
	rows, err := tx.Query(t.Context(), `
		select o, a, h, r, w, f, pawl.open_state(o, a, h, r, w, f)::text
		from generate_series(0, 2) o, generate_series(0, 2) a, generate_series(0, 2) h,
			generate_series(0, 2) r, generate_series(0, 2) w, generate_series(0, 2) f`)
	require.NoError(t, err)
	count := 0
	for rows.Next() {
		var c counters
		var state workflow.TaskState
		require.NoError(t, rows.Scan(&c.Open, &c.Active, &c.Held, &c.Retrying, &c.Waiting, &c.Failed, &state))
		require.Equal(t, openState(c), state, "%+v", c)
		count++
	}
	require.NoError(t, rows.Err())
	require.Equal(t, 729, count)
}
