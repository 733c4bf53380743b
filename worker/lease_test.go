package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/worker"
)

func TestLeasesAreExtendedWhileAHandlerRuns(t *testing.T) {
	k := newKit(t)
	k.queue("long_queue")
	k.template("long", "long_queue")
	k.leases("long", time.Second)
	task := k.submit("long", "long_queue", nil)[0]
	w := k.worker(worker.Config{}, "long_queue")
	release := make(chan struct{})
	worker.Handle(w, "long", func(ctx context.Context, _ worker.Step[any]) (any, error) {
		select {
		case <-release:
			return "done", nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	k.start(w)
	// The end of the lease moves on past where it was first.
	k.eventually(func() bool { return k.count(`select count(*) from pgmq.q_long_queue where read_ct = 1`) == 1 })
	var first time.Time
	require.NoError(t, k.pool.QueryRow(t.Context(), `select vt from pgmq.q_long_queue`).Scan(&first))
	k.eventually(func() bool {
		return k.count(`select count(*) from pgmq.q_long_queue where vt > $1::timestamptz + interval '2 s'`, first) == 1
	})
	close(release)
	require.Equal(t, 1, k.await(task, "complete").Deliveries)
}

func TestALostLeaseEndsTheHandlersContextAndItsResultDoesNotCount(t *testing.T) {
	k := newKit(t)
	k.template("slow", "slow_queue")
	k.leases("slow", 2*time.Second)
	task := k.submit("slow", "slow_queue", nil)[0]
	w := k.worker(worker.Config{Name: "first"}, "slow_queue")
	entered, causes, release := make(chan struct{}, 1), make(chan error, 1), make(chan struct{})
	worker.Handle(w, "slow", func(ctx context.Context, _ worker.Step[any]) (any, error) {
		entered <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		<-release
		return "first", nil
	})
	k.start(w)
	receive(k, entered, "the handler")
	// Somebody else gets the message, as after a suspended process. In one transaction: no heartbeat comes between.
	require.NoError(t, pgx.BeginFunc(t.Context(), k.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `update pgmq.q_slow_queue set vt = clock_timestamp()`); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `select pawl.claim_steps('slow_queue', 1, 'second')`)
		return err
	}))
	require.Equal(t, 2, k.step(task, "run").Deliveries)
	require.ErrorIs(t, receive(k, causes, "the end of the context"), worker.ErrLeaseLost)
	close(release)
	require.NoError(t, w.Stop(t.Context()))
	require.Equal(t, "in_progress", k.step(task, "run").State)
	require.Equal(t, "second", k.step(task, "run").Worker)
	_, err := k.pool.Exec(t.Context(), `select pawl.report_steps('slow_queue', (select jsonb_build_array(jsonb_build_object(
		'msg_id', msg_id, 'read_ct', read_ct, 'status', 'complete', 'result', 'second')) from pgmq.q_slow_queue), 'second')`)
	require.NoError(t, err)
	r := k.await(task, "complete")
	require.Equal(t, `"second"`, r.Result)
	require.Equal(t, 2, r.Deliveries)
}

func TestACancelReachesTheHandler(t *testing.T) {
	k := newKit(t)
	k.template("slow", "slow_queue")
	k.leases("slow", time.Second)
	task := k.submit("slow", "slow_queue", nil)[0]
	w := k.worker(worker.Config{}, "slow_queue")
	entered, causes := make(chan struct{}, 1), make(chan error, 1)
	worker.Handle(w, "slow", func(ctx context.Context, _ worker.Step[any]) (any, error) {
		entered <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	k.start(w)
	receive(k, entered, "the handler")
	_, err := k.pool.Exec(t.Context(), `select pawl.cancel_task($1, 'anna', 'not wanted')`, task)
	require.NoError(t, err)
	require.ErrorIs(t, receive(k, causes, "the end of the context"), worker.ErrCancelled)
	k.eventually(func() bool { k.settle(); return k.count(`select count(*) from pgmq.q_slow_queue`) == 0 })
	require.Equal(t, "cancelled", k.step(task, "run").State)
	require.Equal(t, "cancelled", k.step(task, "run").TaskState)
}

func TestAKilledWorkersStepsComeBackAfterTheLease(t *testing.T) {
	k := newKit(t)
	task := k.submit("h", "killed_queue", nil)[0]
	// A worker that claims and is killed: nobody extends, nobody reports.
	require.Equal(t, 1, k.count(`select json_array_length(pawl.claim_steps('killed_queue', 10, 'killed'))`))
	w := k.worker(worker.Config{Name: "other", Poll: 20 * time.Millisecond, NoListen: true}, "killed_queue")
	worker.Handle(w, "h", func(_ context.Context, step worker.Step[any]) (int, error) { return step.Delivery, nil })
	k.start(w)
	require.Equal(t, "killed", k.step(task, "run").Worker)
	k.expire("killed_queue")
	r := k.await(task, "complete")
	require.Equal(t, `2`, r.Result)
	require.Equal(t, 1, r.Attempt)
}

func TestATimeoutEndsTheHandlersContext(t *testing.T) {
	k := newKit(t)
	k.template("slow", "slow_queue")
	_, err := k.pool.Exec(t.Context(), `update pawl.template_steps set timeout = '200 ms' where handler = 'slow'`)
	require.NoError(t, err)
	w := k.worker(worker.Config{}, "slow_queue")
	causes := make(chan error, 10)
	worker.Handle(w, "slow", func(ctx context.Context, _ worker.Step[any]) (any, error) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	k.start(w)
	k.submit("slow", "slow_queue", nil)
	require.ErrorIs(t, receive(k, causes, "the end of the context"), worker.ErrTimeout)
}

func TestStopHandsUnfinishedStepsBack(t *testing.T) {
	k := newKit(t)
	task := k.submit("slow", "stop_queue", nil)[0]
	deaf := k.submit("deaf", "stop_queue", nil)[0]
	quick := k.submit("quick", "stop_queue", nil)[0]
	w := k.worker(worker.Config{Grace: 50 * time.Millisecond}, "stop_queue")
	entered, causes, never := make(chan struct{}, 3), make(chan error, 1), make(chan struct{})
	defer close(never)
	worker.Handle(w, "slow", func(ctx context.Context, _ worker.Step[any]) (any, error) {
		entered <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	worker.Handle(w, "deaf", func(context.Context, worker.Step[any]) (any, error) {
		entered <- struct{}{}
		<-never
		return nil, errors.New("too late")
	})
	worker.Handle(w, "quick", func(ctx context.Context, _ worker.Step[any]) (any, error) {
		entered <- struct{}{}
		<-ctx.Done()
		return "finished all the same", nil
	})
	k.start(w)
	for range 3 {
		receive(k, entered, "three handlers")
	}
	require.ErrorContains(t, w.Stop(t.Context()), "left behind: 1 ")
	require.ErrorContains(t, w.Stop(t.Context()), "left behind: 1 ")
	require.ErrorIs(t, receive(k, causes, "the end of the context"), worker.ErrStopping)
	require.Equal(t, 2, k.count(`select count(*) from pgmq.q_stop_queue where vt <= clock_timestamp() and read_ct = 1`))
	k.settle()
	require.Equal(t, "complete", k.step(quick, "run").State)

	other := k.worker(worker.Config{Name: "other"}, "stop_queue")
	for _, name := range []string{"slow", "deaf"} {
		worker.Handle(other, name, func(_ context.Context, step worker.Step[any]) (int, error) { return step.Delivery, nil })
	}
	k.start(other)
	require.Equal(t, `2`, k.await(task, "complete").Result)
	require.Equal(t, `2`, k.await(deaf, "complete").Result)
}

func TestStopWaitsForHandlersAndReportsThem(t *testing.T) {
	k := newKit(t)
	task := k.submit("slow", "wait_queue", nil)[0]
	w := k.worker(worker.Config{}, "wait_queue")
	entered, release := make(chan struct{}), make(chan struct{})
	worker.Handle(w, "slow", func(context.Context, worker.Step[any]) (string, error) {
		close(entered)
		<-release
		return "finished", nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	receive(k, entered, "the handler")
	cancel()
	select {
	case err := <-ran:
		require.Fail(t, "Run returned while a handler was at work", "%v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	require.NoError(t, receive(k, ran, "the end of Run"))
	k.settle()
	require.Equal(t, `"finished"`, k.step(task, "run").Result)
}
