package sql_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// crowd makes a holder of a step key and n tasks that wait for it.
func (k *kit) crowd(n int) (holder uuid.UUID, waiters []uuid.UUID) {
	k.Helper()
	keyed(k)
	holder = k.Submit("shop/render", object{"input": object{"url": "u"}})
	for range n {
		waiters = append(waiters, k.Submit("shop/render", object{"input": object{"url": "u"}}))
	}
	require.Equal(k, n, k.waiting())
	return holder, waiters
}

// waiting tells how many steps wait for a key.
func (k *kit) waiting() int {
	k.Helper()
	return get[int](k, "select count(*)::int from pawl.steps where state = 'waiting'")
}

// asked tells which tasks the step-enqueuer is asked to look at.
func (k *kit) asked() []uuid.UUID {
	k.Helper()
	return list[uuid.UUID](k, "select (message->>'task_id')::uuid from pgmq.q_orchestration_step_enqueues order by msg_id")
}

// R13: the end of a step whose key many wait for settles some of them and leaves the others to the step-enqueuer, by one
// message, which goes on in pieces until nobody waits.
func TestACrowdThatWaitsForAKeyIsWokenInPieces(t *testing.T) {
	k := newKit(t)
	holder, _ := k.crowd(450)
	k.Finish(queue, k.ClaimOne(queue))
	for _, left := range []int{250, 50, 0} {
		require.Equal(t, left, k.waiting())
		if left == 0 {
			break
		}
		require.Equal(t, []uuid.UUID{holder}, k.asked())
		k.Exec("select pawl.process_step_enqueues(array(select msg_id from pgmq.q_orchestration_step_enqueues))")
	}
	require.Empty(t, k.asked())
	require.Zero(t, get[int](k, "select count(*)::int from pawl.step_key_waiters"))
	k.work(queue)
	require.Equal(t, 451, get[int](k, "select count(*)::int from pawl.tasks where state = 'complete'"))
	k.sound()
}

// The bound counts steps, too: who waits may be a large task.
func TestLargeTasksThatWaitForAKeyAreWokenInPieces(t *testing.T) {
	k := newKit(t)
	holder, _ := k.crowd(4)
	setting(k, "max_steps_per_transaction = 5") // two tasks of two steps
	k.Finish(queue, k.ClaimOne(queue))
	require.Equal(t, 2, k.waiting())
	require.Equal(t, []uuid.UUID{holder}, k.asked())
	k.Rest()
	require.Zero(t, k.waiting())
	k.work(queue)
	require.Equal(t, 5, get[int](k, "select count(*)::int from pawl.tasks where state = 'complete'"))
	k.sound()
}

// When a holder fails, one of the crowd takes the key, and the others wait behind it: each end wakes the next.
func TestACrowdBehindFailingHoldersLosesNobody(t *testing.T) {
	for _, end := range []string{"fails", "is cancelled"} {
		t.Run(end, func(t *testing.T) {
			k := newKit(t)
			k.crowd(6)
			setting(k, "max_steps_per_transaction = 5")
			for left := 5; left >= 0; left-- {
				d := k.ClaimOne(queue)
				if end == "fails" {
					k.fail(queue, d)
				} else {
					k.object("select pawl.cancel_task($1, 'ann', 'r')", d.Task)
				}
				k.Rest()
				require.Equal(t, left, k.waiting())
			}
			k.Finish(queue, k.ClaimOne(queue))
			k.work(queue)
			require.Zero(t, get[int](k, "select count(*)::int from pawl.tasks where finalized_at is null"))
			k.sound()
		})
	}
}

// Who no longer waits takes nobody's place, and who is held by somebody gets a message of its own.
func TestACrowdWithHeldAndGoneWaitersIsWoken(t *testing.T) {
	k := newCommittingKit(t)
	_, waiters := k.crowd(8)
	for _, gone := range waiters[:4] {
		k.object("select pawl.cancel_task($1, 'ann', 'r')", gone)
	}
	k.Rest()
	require.Equal(t, 4, get[int](k, "select count(*)::int from pawl.step_key_waiters"))
	// As an older version left them, until the reconciler came by.
	k.Exec("insert into pawl.step_key_waiters select 'do.fetch', 'u', task, 'fetch' from unnest($1::uuid[]) task", waiters[:4])
	setting(k, "max_steps_per_transaction = 5")
	held := k.begin()
	held.Exec("select from pawl.tasks where task_id = $1 for no key update", waiters[4])
	k.Finish(queue, k.ClaimOne(queue))
	require.Equal(t, 2, k.waiting(), "of four, one is held")
	k.Exec("select pawl.process_step_enqueues(array(select msg_id from pgmq.q_orchestration_step_enqueues))")
	require.Equal(t, 1, k.waiting())
	require.Equal(t, []uuid.UUID{waiters[4]}, k.asked())
	held.commit()
	k.Rest()
	require.Zero(t, k.waiting())
	require.Empty(t, k.asked())
}
