package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// R13: steps that take over a result ready others, which may take it over as well. A transaction follows them for a few
// generations, and asks for the next ones; none of them begins meanwhile without its key.
func TestStepsThatAttachInARowAreTakenInPieces(t *testing.T) {
	k := newKit(t)
	k.Template("shop/row", nil, inARow(50, object{"key": "${input.url}", "handler": "do.fetch"})...)
	task := k.Submit("shop/row", object{"input": object{"url": "u"}})
	k.Finish(queue, k.ClaimOne(queue))
	done := func() int {
		return get[int](k, "select count(*)::int from pawl.steps where state = 'complete'")
	}
	for _, want := range []int{21, 41, 50} {
		require.Equal(t, want, done())
		require.Zero(t, get[int](k, "select count(*)::int from pgmq.q_work_queue"))
		k.Exec("select pawl.process_step_enqueues(array(select msg_id from pgmq.q_orchestration_step_enqueues))")
	}
	require.Equal(t, "complete", k.State(task))
	k.sound()
}
