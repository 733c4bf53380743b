package sql_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestWhoWaitedForAKeyTakesItsResultThoughItsWindowIsOver(t *testing.T) {
	for name, fields := range map[string]object{
		"no window":    {"identity": object{"dedup_window_ms": 0}},
		"no retention": {"retention_ms": 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			k.Template("shop/brief", fields, step("fetch", object{"key": "${input.url}", "handler": "do.fetch"}))
			input := object{"input": object{"url": "u"}}
			first, second, third := k.Submit("shop/brief", input), k.Submit("shop/brief", input), k.Submit("shop/brief", input)
			k.Finish("work_queue", k.ClaimOne("work_queue"))
			k.Rest()
			require.Empty(t, k.Claim("work_queue"), "the handler has run once")
			for _, waiter := range []string{k.result(second, "fetch"), k.result(third, "fetch")} {
				require.Equal(t, k.result(first, "fetch"), waiter)
			}
			require.Equal(t, []string{"complete", "complete"}, []string{k.State(second), k.State(third)})
			later := k.Submit("shop/brief", input)
			require.Equal(t, "enqueued", k.steps(later)["fetch"], "who comes later begins anew")
			k.sound()
		})
	}
}

// Who becomes ready as the holder ends begins anew when the window is over, but not before those who waited have the result.
func TestWhoWaitedForAKeyIsServedBeforeWhoComes(t *testing.T) {
	for name, end := range map[string]func(k *kit, task uuid.UUID){
		"reported": func(k *kit, _ uuid.UUID) { k.Finish(queue, k.ClaimOne(queue)) },
		"by hand": func(k *kit, task uuid.UUID) {
			k.object(`select pawl.complete_step($1, 'a', 0, '{"by": "a"}', 'ann', 'r')`, task)
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			key := object{"key": "${input.url}", "handler": "do.fetch"}
			k.Template("shop/brief", object{"identity": object{"dedup_window_ms": 0}}, step("a", key), step("b: a", key))
			input := object{"input": object{"url": "u"}}
			first, second := k.Submit("shop/brief", input), k.Submit("shop/brief", input)
			end(k, first)
			k.Rest()
			require.Equal(t, `{"by": "a"}`, k.result(second, "a"))
			require.ElementsMatch(t, []string{"enqueued", "waiting"}, []string{k.steps(first)["b"], k.steps(second)["b"]})
			k.Expire(queue)
			require.Equal(t, []string{"b"}, k.work(queue))
			require.Equal(t, k.result(first, "b"), k.result(second, "b"))
			k.sound()
		})
	}
}

// While those who waited are served in pieces, nobody begins anew before their eyes.
func TestNobodyTakesAKeyThatOthersWaitFor(t *testing.T) {
	k := newKit(t)
	k.Template("shop/brief", object{"identity": object{"dedup_window_ms": 0}}, step("fetch", object{"key": "${input.url}", "handler": "do.fetch"}))
	input := object{"input": object{"url": "u"}}
	for range 4 {
		k.Submit("shop/brief", input)
	}
	setting(k, "max_steps_per_transaction = 2")
	k.Finish(queue, k.ClaimOne(queue))
	require.Equal(t, 1, k.waiting())
	between := k.Submit("shop/brief", input)
	require.Equal(t, "complete", k.State(between))
	k.Rest()
	require.Zero(t, k.waiting())
	require.Empty(t, k.Claim(queue), "the handler has run once")
	require.Equal(t, "enqueued", k.steps(k.Submit("shop/brief", input))["fetch"], "who comes later begins anew")
	k.sound()
}

// Who waited is cancelled by the same reports that end the holder: nobody waits any more, and who comes begins anew.
func TestAWaiterThatIsCancelledAsTheHolderEndsKeepsNoKey(t *testing.T) {
	k := newKit(t)
	key := object{"key": "${input.url}", "handler": "do.fetch"}
	k.Template("shop/brief", object{"identity": object{"dedup_window_ms": 0}}, step("a", key), step("b: a", key))
	k.Template("shop/fast", object{"on_failure": "fail_fast"}, step("fails"), step("waits", key))
	input := object{"input": object{"url": "u"}}
	first, fast := k.Submit("shop/brief", input), k.Submit("shop/fast", input)
	require.Equal(t, "waiting", k.steps(fast)["waits"])
	var reports []object
	for _, d := range k.Claim(queue) {
		r := object{"msg_id": d.ID, "read_ct": d.ReadCount, "status": "complete"}
		if d.Step == "fails" {
			r["status"], r["error"] = "failed", object{"type": "boom", "retryable": false}
		}
		reports = append(reports, r)
	}
	require.Len(t, reports, 2)
	k.Exec("select pawl.report_steps($1, $2, 'w')", queue, reports)
	k.Rest()
	require.Equal(t, map[string]string{"fails": "error", "waits": "cancelled"}, k.steps(fast))
	require.Equal(t, "enqueued", k.steps(first)["b"])
	k.sound()
}
