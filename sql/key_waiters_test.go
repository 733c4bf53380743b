package sql_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// payOnce gives a holder of a key, and a task whose step waits for that key and would then claim an invoice.
func payOnce(k *kit) (holder, waiter uuid.UUID) {
	k.Helper()
	key := object{"key": "${input.invoice}", "handler": "do.pay"}
	invoices(k, key)
	k.Template("billing/first", object{}, step("pay", key, object{"queue": "first_queue"}))
	input := object{"input": object{"invoice": "A-1"}, "requester": "admin"}
	holder, waiter = k.Submit("billing/first", input), k.Submit("billing/pay", input)
	require.Equal(k, "waiting", k.steps(waiter)["pay"])
	return holder, waiter
}

// What a crash under a claim leaves to a person stays theirs, however the step came by its key.
func TestACrashUnderAClaimIsHeldAfterAWaitForTheKey(t *testing.T) {
	ends := map[string]func(k *kit, waiter uuid.UUID){
		"cancelled": func(k *kit, waiter uuid.UUID) { k.object("select pawl.cancel_task($1, 'ann', 'r')", waiter) },
		"put aside by an older version": func(k *kit, waiter uuid.UUID) {
			k.object("select pawl.cancel_task($1, 'ann', 'r')", waiter)
			k.Exec(`insert into pawl.step_key_waiters values ('do.pay', 'A-1', $1, 'pay', 0) on conflict do nothing`, waiter)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			_, waiter := payOnce(k)
			end(k, waiter)
			k.fail("first_queue", k.ClaimOne("first_queue"))
			k.object("select pawl.retry_task($1, null, 'ann', 'again')", waiter)
			k.ClaimOne("work_queue")
			require.Equal(t, "paying 2", k.invoice("A-1"))
			k.Later(10 * time.Minute)
			require.EqualValues(t, 1, k.janitor()["reverted"])
			k.Rest()
			require.Equal(t, "waiting", k.steps(waiter)["pay"])
			k.sound()
		})
	}
}

// Who waits no longer is not among the waiters.
func TestAStepThatEndsWaitsForNoKey(t *testing.T) {
	ends := map[string]string{
		"cancelled": "select pawl.cancel_task($1, 'ann', 'r')",
		"resolved":  "select pawl.resolve_step($1, 'pay', 0, 'ann', 'r')",
		"timed out": "select pawl.end_tasks(array[$1::uuid], 'timed_out', '{}')",
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			k := newKit(t)
			_, waiter := payOnce(k)
			k.Exec(end, waiter)
			require.Zero(t, get[int](k, "select count(*)::int from pawl.step_key_waiters"))
		})
	}
	t.Run("swept away by a failure", func(t *testing.T) {
		k := newKit(t)
		keyed(k)
		k.Submit("shop/render", object{"input": object{"url": "u"}})
		k.Template("shop/fast", object{"on_failure": "fail_fast"}, step("go", object{"queue": "fast_queue"}),
			step("fetch", object{"key": "${input.url}", "handler": "do.fetch"}))
		task := k.Submit("shop/fast", object{"input": object{"url": "u"}})
		require.Equal(t, "waiting", k.steps(task)["fetch"])
		k.fail("fast_queue", k.ClaimOne("fast_queue"))
		require.Equal(t, "error", k.State(task))
		require.Zero(t, get[int](k, "select count(*)::int from pawl.step_key_waiters"))
	})
}

// A step that has no value for its key may end its siblings, in the pass that looks at keys.
func TestASiblingOfAStepWithoutAKeyGivesItsOwnUp(t *testing.T) {
	k := newKit(t)
	keyed(k)
	k.Template("shop/fast", object{"on_failure": "fail_fast"}, step("go", object{"queue": "fast_queue"}),
		step("fetch", object{"key": "${input.url}", "handler": "do.fetch"}), step("bare: go", object{"key": "${input.none}"}))
	input := object{"input": object{"url": "u"}}
	fast := k.Submit("shop/fast", input)
	waiter := k.Submit("shop/render", input)
	k.Finish("fast_queue", k.ClaimOne("fast_queue"))
	k.Rest()
	require.Equal(t, map[string]string{"go": "complete", "fetch": "cancelled", "bare": "error"}, k.steps(fast))
	require.Equal(t, "enqueued", k.steps(waiter)["fetch"])
	second := k.Submit("shop/fast", input)
	require.Equal(t, "waiting", k.steps(second)["fetch"])
	k.Finish("fast_queue", k.ClaimOne("fast_queue"))
	k.Rest()
	require.Equal(t, "error", k.State(second))
	require.Zero(t, get[int](k, "select count(*)::int from pawl.step_key_waiters"))
	k.sound()
}
