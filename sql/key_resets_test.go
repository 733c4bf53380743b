package sql_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A step that has to wait for others again may be what these wait for.
func TestAStepThatIsResetGivesUpItsKey(t *testing.T) {
	k := newKit(t)
	key := object{"handler": "do.x", "key": "${input.k}"}
	k.Template("keys/twice", object{"identity": object{"dedup_window_ms": 0}}, step("a", key), step("b: a", key))
	task := k.Submit("keys/twice", object{"input": object{"k": "K"}})
	k.Rest()
	k.Finish("work_queue", k.ClaimOne("work_queue"))
	k.Rest()
	require.Equal(t, "b", k.ClaimOne("work_queue").Step)
	k.Exec("select pawl.retry_task($1, 'a', 'ann', 'again')", task)
	k.Rest()
	require.Equal(t, []string{"a", "b"}, k.work("work_queue"))
	require.Equal(t, "complete", k.State(task))
}

// Who was reset while it waited waits anew: the result of then is not its own when the window is over.
func TestAStepThatIsResetGivesUpItsPlaceInTheWait(t *testing.T) {
	k := newKit(t)
	k.Template("keys/second", object{"identity": object{"dedup_window_ms": 0}}, step("a"), step("b: a", object{"key": "${input.k}"}))
	input := object{"input": object{"k": "K"}}
	k.Submit("keys/second", input)
	k.Finish("work_queue", k.ClaimOne("work_queue"))
	k.Rest()
	holder := k.ClaimOne("work_queue")
	task := k.Submit("keys/second", input)
	k.Finish("work_queue", k.ClaimOne("work_queue"))
	k.Rest()
	require.Equal(t, "waiting", k.steps(task)["b"])
	k.Exec("select pawl.retry_task($1, 'a', 'ann', 'again')", task)
	k.Finish("work_queue", holder)
	k.Rest()
	require.Equal(t, []string{"a", "b"}, k.work("work_queue"))
	require.Equal(t, "complete", k.State(task))
}

func TestWhoWaitsForTheKeyOfACancelledClaimIsWoken(t *testing.T) {
	k := newKit(t)
	k.Invoices(object{"key": "K"})
	first := k.Pay("A-1")
	k.Rest()
	d := k.ClaimOne("pay_queue")
	second := k.Pay("A-2")
	k.Rest()
	require.Equal(t, "waiting", k.steps(second)["pay"])
	k.Exec("select pawl.cancel_task($1, 'ann', 'enough')", first)
	k.Exec("select pawl.release_steps('pay_queue', $1)", []object{{"msg_id": d.ID, "read_ct": d.ReadCount}})
	require.Empty(t, k.Claim("pay_queue"))
	k.Expire("orchestration_step_enqueues")
	k.Rest()
	require.Equal(t, second, k.ClaimOne("pay_queue").Task)
}
