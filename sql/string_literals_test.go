package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a backslash in a literal means is for the session to say (standard_conforming_strings).
func TestNoFunctionHasABackslash(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a")) // with the functions of a queue
	require.Empty(t, list[string](k, `select p.oid::regprocedure::text from pg_proc p
		where p.pronamespace in ('pawl'::regnamespace, 'pawl_queues'::regnamespace) and strpos(p.prosrc, chr(92)) > 0 order by 1`))
}

// Keys were not evaluated in a session with strings of the old kind: all steps had one key, and got the result of the first.
func TestKeysAreTheSameInASessionWithOldStrings(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("shop/pay", nil, step("a"), step("b: a", object{"key": "order-${input.order}"}))
	tasks := map[string]any{k.Submit("shop/pay", object{"input": object{"order": "7"}}).String(): "7",
		k.Submit("shop/pay", object{"input": object{"order": "8"}}).String(): "8"}
	old := k.session("standard_conforming_strings = off", "escape_string_warning = off")
	old.Finish(queue, old.Claim(queue)...)
	require.ElementsMatch(t, []string{"order-7", "order-8"}, list[string](old, "select key from pawl.step_identities"))
	for _, d := range old.Claim(queue) {
		require.True(t, old.Report(queue, d, object{"status": "complete", "result": tasks[d.Task.String()]}))
	}
	for task, order := range tasks {
		require.Equal(t, order, get[any](old, "select result from pawl.tasks where task_id = $1", task))
	}
	require.Equal(t, "7d", get[string](old, "select pawl.show_duration(pawl.parse_duration('7d'))"))
	require.Equal(t, 100, get[int](old, "select rate_limit from pawl.parse_rate('100 / sec')"))
}
