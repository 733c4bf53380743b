package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A worker cannot act, and sign, as an operator by setting what the operator's functions set.
func TestAWorkerIsNoOperator(t *testing.T) {
	k := newKit(t)
	k.Template("shop/one", nil, step("a"))
	task := k.Submit("shop/one")
	pretend := func() {
		k.Exec("select set_config('pawl.actor', 'ann', true), set_config('pawl.reason', 'approved', true)")
	}
	pretend()
	d := k.ClaimOne(queue)
	pretend()
	k.Finish(queue, d)
	require.Equal(k, "complete", k.State(task))
	require.Empty(k, list[string](k, "select event from pawl.audit where task_id = $1 and (actor is not null or reason is not null)", task))
}
