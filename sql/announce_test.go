package sql_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// announced runs act and returns the queues that were announced meanwhile, in alphabetical order.
func (k *kit) announced(act func()) []string {
	k.Helper()
	listener, err := k.pool.Acquire(k.Context())
	require.NoError(k, err)
	defer listener.Release()
	for _, queue := range []string{"work_queue", "other_queue"} {
		_, err = listener.Exec(k.Context(), "listen "+pgx.Identifier{"pgmq.q_" + queue + ".INSERT"}.Sanitize())
		require.NoError(k, err)
	}
	k.Exec("select pg_sleep(0.005)") // no announcement is suppressed by one from before
	act()
	_, err = listener.Exec(k.Context(), "select pg_notify('pgmq.q_work_queue.INSERT', 'end')")
	require.NoError(k, err)
	seen := map[string]bool{}
	for {
		n, err := listener.Conn().WaitForNotification(k.Context())
		require.NoError(k, err)
		if n.Payload == "end" {
			break
		}
		seen[strings.TrimSuffix(strings.TrimPrefix(n.Channel, "pgmq.q_"), ".INSERT")] = true
	}
	_, err = listener.Exec(k.Context(), "unlisten *")
	require.NoError(k, err)
	return slices.Sorted(maps.Keys(seen))
}

// R5: what a call makes ready and takes itself wakes nobody; what it leaves does.
func TestWhatACallTakesItselfWakesNobody(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("wake/fan", nil, step("a"), step("b: a"), step("c: b"), step("d: b"), step("e: b"), step("f: c d e"),
		step("g: c", object{"queue": "other_queue"}))
	var held []delivery
	exchangeWith := func(quantity int, options object) {
		answer := get[struct{ Claimed []delivery }](k, "select pawl.report_and_claim_steps('work_queue', $1, $2, 'w', $3)",
			reportsOf("complete", held...), quantity, options)
		held = answer.Claimed
	}
	exchange := func(quantity int) { exchangeWith(quantity, object{}) }
	require.Equal(k, []string{"work_queue"}, k.announced(func() { k.Submit("wake/fan") }), "a is for whoever comes")
	held = k.Claim(queue)
	require.Empty(k, k.announced(func() { exchange(10) }), "b was taken along")
	require.Len(k, held, 1)
	require.Equal(k, []string{"work_queue"}, k.announced(func() { exchange(2) }), "c, d and e are three")
	require.Len(k, held, 2)
	require.Equal(k, []string{"other_queue"}, k.announced(func() { exchange(10) }), "g is in another queue")
	require.Len(k, held, 1, "e")
	require.Equal(k, []string{"work_queue"}, k.announced(func() { k.Finish(queue, held...) }), "f is for whoever comes")
	held = k.Claim(queue)
	k.Submit("wake/fan")
	require.Empty(k, k.announced(func() { exchange(1) }), "f made nothing ready")
	exchange(1)
	require.Len(k, held, 1, "b")
	require.Equal(k, []string{"work_queue"}, k.announced(func() { exchangeWith(10, object{"max_bytes": 1}) }), "one of c, d and e fits")
	require.Len(k, held, 1)
	k.work(queue)

	many := make([]delivery, 0, 5)
	for range 5 {
		k.Submit("wake/fan")
	}
	for len(many) < 5 {
		for _, d := range k.Claim(queue) {
			if d.Step == "a" {
				many = append(many, d)
			}
		}
	}
	held = many
	require.Equal(k, []string{"work_queue"}, k.announced(func() { exchange(10) }), "more than a few are announced: others may be idle")
}

func TestAQueueNamedFinishedTakesNoEndsAnnouncement(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("wake/finished", nil, step("a", object{"queue": "finished"}))
	listener, err := k.pool.Acquire(k.Context())
	require.NoError(t, err)
	defer listener.Release()
	for _, channel := range []string{"pawl_finished", "pgmq.q_finished.INSERT"} {
		_, err = listener.Exec(k.Context(), "listen "+pgx.Identifier{channel}.Sanitize())
		require.NoError(t, err)
	}
	k.Exec("select pg_sleep(0.005)") // as above
	k.Exec("select pawl.tell('pgmq.q_finished.INSERT', 'pawl_queues.announced_finished'), pawl.announce_finished()")
	seen := map[string]bool{}
	for len(seen) < 2 {
		n, err := listener.Conn().WaitForNotification(k.Context())
		require.NoError(t, err)
		seen[n.Channel] = true
	}
}

// The switch is for producers and workers that prepare their transactions: Postgres prepares none that has notified.
func TestNothingIsAnnouncedWhileItIsSwitchedOff(t *testing.T) {
	k := newCommittingKit(t)
	k.Template("wake/one", nil, step("a"))
	setting(k, "announce = false")
	require.Empty(t, k.announced(func() {
		k.Submit("wake/one")
		d := k.ClaimOne(queue)
		lease := []object{{"msg_id": d.ID, "read_ct": d.ReadCount}}
		require.Equal(t, true, get[[]object](k, "select pawl.release_steps('work_queue', $1)", lease)[0]["released"])
		k.Finish(queue, k.ClaimOne(queue))
	}))
}
