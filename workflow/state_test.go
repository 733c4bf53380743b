package workflow

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEveryStateIsOpenOrFinal(t *testing.T) {
	t.Parallel()
	for _, s := range TaskStates() {
		require.NotEqual(t, s.IsOpen(), s.IsFinal(), s)
	}
	for _, s := range StepStates() {
		require.NotEqual(t, s.IsOpen(), s.IsFinal(), s)
	}
	require.False(t, TaskState("asleep").IsOpen() || TaskState("asleep").IsFinal())
	require.False(t, StepState("").IsOpen() || StepState("").IsFinal())
}

func TestNoTaskLeavesWhatItMayNot(t *testing.T) {
	t.Parallel()
	for _, to := range TaskStates() {
		require.False(t, CanTransition(TaskComplete, to), to)
		require.False(t, CanTransition(TaskResolvedManually, to), to)
		require.Equal(t, to.IsOpen(), CanTransition("", to), "creation as %s", to)
	}
	for _, from := range TaskStates() {
		if from.IsOpen() {
			for _, to := range TaskStates() {
				require.True(t, !to.IsFinal() || CanTransition(from, to), "%s → %s", from, to)
			}
		}
	}
}

// A task ends as complete or error by way of evaluating_results only.
func TestEvaluationComesBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for _, tr := range LegalTransitions() {
		if tr.Entity == EntityTask && (tr.To == "complete" || tr.To == "error") {
			require.True(t, tr.From == "evaluating_results" || tr.Via == "evaluating_results", "%+v", tr)
		}
	}
}

func TestOnlyOperatorsLeaveFinalStates(t *testing.T) {
	t.Parallel()
	for _, tr := range LegalTransitions() {
		final := TaskState(tr.From).IsFinal()
		if tr.Entity == EntityStep {
			final = StepState(tr.From).IsFinal()
		}
		if final || tr.To == "resolved_manually" {
			require.True(t, tr.OperatorOnly, "%+v", tr)
		}
	}
}

func TestTransitionsAreWellFormed(t *testing.T) {
	t.Parallel()
	seen := make(map[pair]Transition)
	for _, tr := range LegalTransitions() {
		key := pair{tr.Entity, tr.From, tr.To}
		require.NotContains(t, seen, key)
		seen[key] = tr
		require.NotEmpty(t, tr.Event)
		require.Equal(t, tr.Via != "", tr.Hops == 2, "%+v", tr)
	}
	for _, tr := range seen {
		if tr.Via != "" { // both hops stand in the table as well
			require.Equal(t, 1, seen[pair{tr.Entity, tr.From, tr.Via}].Hops, "%+v", tr)
			require.Equal(t, 1, seen[pair{tr.Entity, tr.Via, tr.To}].Hops, "%+v", tr)
			require.Equal(t, tr.Event, seen[pair{tr.Entity, tr.Via, tr.To}].Event, "%+v", tr)
		}
	}
}

func TestInvalidTransitionsAreNamed(t *testing.T) {
	t.Parallel()
	require.NoError(t, CheckTransition(StepEnqueued, StepInProgress))
	err := CheckTransition(TaskComplete, TaskPending)
	var invalid *InvalidTransitionError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, InvalidTransitionError{EntityTask, "complete", "pending"}, *invalid)
	require.EqualError(t, err, "a task cannot go from complete to pending")
	require.EqualError(t, CheckTransition("", StepComplete), "a step cannot be created as complete")
	require.False(t, CanTransition(StepEnqueued, StepEnqueued))
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "30s": 30 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour,
		"1d2h3m4s5ms": 26*time.Hour + 3*time.Minute + 4*time.Second + 5*time.Millisecond, "3650d": MaxDuration,
	} {
		got, err := ParseDuration(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "5", "-5s", "+5s", "1.5h", "5 s", "s", "5m1h", "5s5s", "3651d", "99999999999999999999s", "3650d1ms", "1w", "5S", "1h-5m", "30s ",
	} {
		_, err := ParseDuration(text)
		require.Error(t, err, text)
	}
}

func TestDurationsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64Range(0, MaxDuration.Milliseconds()).Draw(t, "ms")) * time.Millisecond
		got, err := ParseDuration(FormatDuration(want))
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}
