package worker_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/worker"
)

// giveBack starts a worker for two queues whose lane of a_queue has a message to give back that somebody has locked.
func giveBack(k *kit, ago time.Duration) (*worker.Worker, *lockedBuffer) {
	k.Helper()
	k.template("long", "a_queue")
	k.leases("long", 2*time.Second)
	k.queue("b_queue")
	log := new(lockedBuffer)
	w := k.worker(worker.Config{Grace: time.Millisecond, Log: slog.New(slog.NewTextHandler(log, nil))}, "a_queue", "b_queue")
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
	// Not visible before the test is over, and no delivery yet: the fences are (id, 0).
	var ids []int64
	for _, locked := range []bool{false, true} {
		var id int64
		require.NoError(k, k.pool.QueryRow(k.Context(), `select pgmq.send('a_queue', jsonb_build_object('locked', $1::bool), 600)`, locked).Scan(&id))
		if locked {
			_, err = tx.Exec(k.Context(), `select from pgmq.q_a_queue where msg_id = $1 for update`, id)
			require.NoError(k, err)
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		w.Wait("a_queue", id, ago)
	}
	return w, log
}

// givenBack waits until what can be given back is, and what cannot was tried.
func (k *kit) givenBack(log *lockedBuffer) {
	k.Helper()
	k.eventually(func() bool { return strings.Contains(log.String(), "giving steps back: it failed") })
	require.Contains(k, log.String(), "count=1 ")
	require.Zero(k, k.count(`select count(*) from pgmq.q_a_queue where message->>'locked' = 'false' and vt > clock_timestamp() + interval '5 min'`))
}

func TestGivingBackHoldsUpNoLease(t *testing.T) {
	k := newKit(t)
	_, log := giveBack(k, time.Second) // longer than any should wait
	k.givenBack(log)
	var began time.Time
	require.NoError(t, k.pool.QueryRow(t.Context(), `select clock_timestamp()`).Scan(&began))
	k.eventually(func() bool {
		return k.count(`select count(*) from pgmq.q_a_queue where read_ct = 1 and vt > $1::timestamptz + interval '3 s'`, began) == 1
	})
}

func TestStopReachesAllQueuesWhileOneGivesBack(t *testing.T) {
	k := newKit(t)
	w, log := giveBack(k, 0) // so that Stop does it
	stopped := make(chan error, 1)
	go func() { stopped <- w.Stop(context.Background()) }()
	k.eventually(func() bool { return w.Stopping("b_queue") })
	require.NoError(t, receive(k, stopped, "the end of Stop"))
	k.givenBack(log)
}
