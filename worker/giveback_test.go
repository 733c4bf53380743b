package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/worker"
)

// giveBack starts a worker for two queues whose lane of a_queue has a message to give back that somebody has locked.
func giveBack(k *kit, ago time.Duration) *worker.Worker {
	k.Helper()
	k.template("long", "a_queue")
	k.leases("long", 2*time.Second)
	k.queue("b_queue")
	w := k.worker(worker.Config{Grace: time.Millisecond}, "a_queue", "b_queue")
	entered := make(chan struct{}, 1)
	worker.Handle(w, "long", func(ctx context.Context, _ worker.Step[any]) (any, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	k.submit("long", "a_queue", nil)
	k.start(w)
	receive(k, entered, "the handler")
	tx, err := k.pool.Begin(k.Context())
	require.NoError(k, err)
	k.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	// Not visible before the test is over, and no delivery yet: the fence is (id, 0).
	var id int64
	require.NoError(k, k.pool.QueryRow(k.Context(), `select pgmq.send('a_queue', '{}', 600)`).Scan(&id))
	_, err = tx.Exec(k.Context(), `select from pgmq.q_a_queue where msg_id = $1 for update`, id)
	require.NoError(k, err)
	w.Wait("a_queue", id, ago)
	return w
}

// waits says whether a call that gives back waits for its lock, and has not been given up.
func (k *kit) waits() bool {
	k.Helper()
	return k.count(`select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
		and query like '%release_steps%' and clock_timestamp() - query_start < interval '8 s'`) > 0
}

func TestGivingBackHoldsUpNoLease(t *testing.T) {
	k := newKit(t)
	giveBack(k, time.Second) // longer than any should wait
	k.eventually(k.waits)
	var began time.Time
	require.NoError(t, k.pool.QueryRow(t.Context(), `select clock_timestamp()`).Scan(&began))
	k.eventually(func() bool {
		return k.count(`select count(*) from pgmq.q_a_queue where read_ct = 1 and vt > $1::timestamptz + interval '3 s'`, began) == 1
	})
}

func TestStopReachesAllQueuesWhileOneGivesBack(t *testing.T) {
	k := newKit(t)
	w := giveBack(k, 0) // so that Stop does it
	stopped := make(chan error, 1)
	go func() { stopped <- w.Stop(context.Background()) }()
	k.eventually(func() bool { return w.Stopping("b_queue") && k.waits() })
	require.NoError(t, receive(k, stopped, "the end of Stop"))
}
