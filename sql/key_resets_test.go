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

// Who asks later finds the work done, whoever did it: it is not done twice.
func TestAStepThatAPersonEndsHoldsItsKey(t *testing.T) {
	for _, end := range []string{"select pawl.complete_step($1, 'fetch', 0, '\"hand\"', 'ann', 'r')", "select pawl.resolve_step($1, 'fetch', 0, 'ann', 'r')"} {
		for name, before := range map[string]func(k *kit){
			"failed":           func(k *kit) { k.fail(queue, k.ClaimOne(queue)) },
			"failed and swept": func(k *kit) { k.fail(queue, k.ClaimOne(queue)); k.object("select pawl.sweep()") },
			"not begun":        func(*kit) {},
		} {
			t.Run(end+name, func(t *testing.T) {
				k := newKit(t)
				k.Template("shop/two", nil, step("check", object{"queue": "check_queue"}), step("fetch: check", object{"key": "${input.url}", "handler": "do.fetch"}))
				input := object{"input": object{"url": "u"}}
				first := k.Submit("shop/two", input)
				if name != "not begun" {
					k.work("check_queue")
				}
				before(k)
				k.Exec(end, first)
				k.Rest()
				second := k.Submit("shop/two", input)
				k.work("check_queue")
				require.Empty(t, k.work(queue))
				require.Equal(t, "complete", k.State(second))
				require.Equal(t, k.result(first, "fetch"), k.result(second, "fetch"))
				k.sound()
			})
		}
	}
}

// While another one runs under the key, that one holds it.
func TestAStepThatAPersonEndsTakesNoKeyAway(t *testing.T) {
	k := newKit(t)
	keyed(k)
	input := object{"input": object{"url": "u"}}
	k.Submit("shop/render", input)
	second, third := k.Submit("shop/render", input), k.Submit("shop/render", input)
	k.Exec("select pawl.complete_step($1, 'fetch', 0, '\"hand\"', 'ann', 'r')", second)
	k.Rest()
	require.Equal(t, "waiting", k.steps(third)["fetch"])
	k.work(queue)
	require.Equal(t, `{"by": "fetch"}`, k.result(third, "fetch"))
	require.Equal(t, `"hand"`, k.result(second, "fetch"))
	k.sound()
}
