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
