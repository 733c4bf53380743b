package cli

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/workflow"
)

// What is shown of a task and what is shown of its steps are of one moment.
func TestATaskIsShownWithTheStepsOfTheSameMoment(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.engine()
	pool, err := pgxpool.New(t.Context(), s.url)
	require.NoError(t, err)
	defer pool.Close()
	for range 50 {
		id := uuid.MustParse(s.submitDiamond(`{}`))
		for final := false; !final; {
			shown, err := readTaskAndSteps(t.Context(), &database{Pool: pool}, id)
			require.NoError(t, err)
			open := 0
			for _, step := range shown.StepRows {
				if !workflow.StepState(step.State).IsFinal() {
					open++
				}
			}
			require.Equal(t, shown.Open, open, "%s: %+v", shown.State, shown.StepRows)
			final = shown.final()
		}
	}
}
