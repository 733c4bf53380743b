package main

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/workflow"
)

func TestDatabaseHoldsTheLegalTransitions(t *testing.T) {
	t.Parallel()
	tx := pgtest.Tx(t)
	rows, err := tx.Query(t.Context(), `select entity, from_state, to_state, coalesce(via_state, ''), hops::int, event, operator_only
		from pawl.legal_transitions`)
	require.NoError(t, err)
	have, err := pgx.CollectRows(rows, pgx.RowToStructByPos[workflow.Transition])
	require.NoError(t, err)
	require.ElementsMatch(t, workflow.LegalTransitions(), have)
}

// Every pair of labels of the database's types, and creation, asked of both sides.
func TestDatabaseAndCanTransitionAgreeOnEveryPair(t *testing.T) {
	t.Parallel()
	tx := pgtest.Tx(t)
	pairs := func(entity string) [][3]string {
		rows, err := tx.Query(t.Context(), `
			with labels as (select e.enumlabel::text as label from pg_enum e where e.enumtypid = ('pawl.' || $1 || '_state')::regtype)
			select f.label, s.label, (exists (select from pawl.legal_transitions l
				where l.entity = $1 and l.from_state = f.label and l.to_state = s.label))::text
			from (select label from labels union all select '') f cross join labels s`, entity)
		require.NoError(t, err)
		all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p [3]string, err error) {
			return p, row.Scan(&p[0], &p[1], &p[2])
		})
		require.NoError(t, err)
		return all
	}
	tasks, steps := pairs("task"), pairs("step")
	require.Len(t, tasks, 14*13)
	require.Len(t, steps, 11*10)
	for _, p := range tasks {
		require.Equal(t, p[2] == "true", workflow.CanTransition(workflow.TaskState(p[0]), workflow.TaskState(p[1])), p)
	}
	for _, p := range steps {
		require.Equal(t, p[2] == "true", workflow.CanTransition(workflow.StepState(p[0]), workflow.StepState(p[1])), p)
	}
}

// The rule that makes a task's open state from its counters stands in SQL and, for the model, in Go.
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
		var c workflow.Counters
		var state workflow.TaskState
		require.NoError(t, rows.Scan(&c.Open, &c.Active, &c.Held, &c.Retrying, &c.Waiting, &c.Failed, &state))
		require.Equal(t, workflow.EvaluateCounters(c), state, "%+v", c)
		count++
	}
	require.NoError(t, rows.Err())
	require.Equal(t, 729, count)
}
