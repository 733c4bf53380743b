package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/worker"
)

// More than a claim and the looks after it absorb: without its announcement nothing would bring the worker back.
func TestStaleMessagesDoNotHoldUpLiveOnes(t *testing.T) {
	k := newKit(t)
	for _, task := range k.submit("h", "stale_queue", make([]any, 300)...) {
		_, err := k.pool.Exec(t.Context(), `select pawl.cancel_task($1, 'ann', 'not wanted')`, task)
		require.NoError(t, err)
	}
	live := k.submit("h", "stale_queue", nil)[0]
	w := k.worker(worker.Config{Queues: []worker.Queue{{Name: "stale_queue", Concurrency: 1}}, Poll: time.Hour, ProvenPoll: time.Hour})
	worker.Handle(w, "h", func(context.Context, worker.Step[any]) (any, error) { return 1, nil })
	k.start(w)
	require.Equal(t, 1, k.await(live, "complete").Deliveries)
}

func TestAPollingWorkerPassesStaleMessagesToo(t *testing.T) {
	k := newKit(t)
	for _, task := range k.submit("h", "stale_queue", make([]any, 50)...) {
		_, err := k.pool.Exec(t.Context(), `select pawl.cancel_task($1, 'ann', 'not wanted')`, task)
		require.NoError(t, err)
	}
	live := k.submit("h", "stale_queue", nil)[0]
	w := k.worker(worker.Config{Queues: []worker.Queue{{Name: "stale_queue", Concurrency: 1}}, Poll: time.Hour, NoListen: true})
	worker.Handle(w, "h", func(context.Context, worker.Step[any]) (any, error) { return 1, nil })
	k.start(w)
	require.Equal(t, 1, k.await(live, "complete").Deliveries)
}
