package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
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

// A task that runs again before its end is told has not ended: what is told is an end.
func TestATaskThatRunsAgainBeforeItsEndIsToldIsWaitedForAgain(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.engine()
	id := s.submitDiamond(`{"fail": true}`)
	require.Equal(t, ExitTaskFailed, s.run("task", "wait", id).code)
	operator, err := pgx.Connect(t.Context(), s.url)
	require.NoError(t, err)
	defer operator.Close(t.Context())
	tx, err := operator.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `lock table pawl.templates in access exclusive mode`) // who waits does not read it, who tells does
	require.NoError(t, err)
	var out bytes.Buffer
	s.url += "&default_query_exec_mode=exec" // a statement goes on at once when the lock is free
	told := make(chan error, 1)
	go func() {
		a := &app{Streams: Streams{Out: &out}, databaseURL: s.url}
		told <- a.with(t.Context(), func(db *database) error { return a.awaitTask(t.Context(), db, decision{TaskID: uuid.MustParse(id)}) })
	}()
	require.Eventually(t, func() bool {
		return s.sql(`select exists (select from pg_stat_activity where datname = current_database() and application_name = 'pawl'
			and wait_event_type = 'Lock')::text`) == "true"
	}, deadline, 20*time.Millisecond)
	_, err = tx.Exec(t.Context(), `select pawl.retry_task($1, null, 'tester', 'a test')`, id)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	require.ErrorContains(t, <-told, "ended error: ")
	require.Contains(t, out.String(), "task "+id+" error in ")
}
