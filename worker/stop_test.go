package worker_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/worker"
)

func TestTheEndOfAnyStopsContextEndsTheGracePeriod(t *testing.T) {
	k := newKit(t)
	k.submit("slow", "hurry_queue", nil)
	w := k.worker(worker.Config{Grace: time.Hour}, "hurry_queue")
	entered, causes := make(chan struct{}), make(chan error, 1)
	worker.Handle(w, "slow", func(ctx context.Context, _ worker.Step[any]) (any, error) {
		close(entered)
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	k.start(w)
	receive(k, entered, "the handler")
	patient := make(chan error, 1)
	go func() { patient <- w.Stop(context.Background()) }()
	k.eventually(func() bool { return w.Stopping("hurry_queue") })
	require.Empty(t, causes)
	expired, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, w.Stop(expired))
	require.NoError(t, receive(k, patient, "the first Stop"))
	require.ErrorIs(t, receive(k, causes, "the end of the context"), worker.ErrStopping)
}

// The handler waits for Stop, and Stop for the handler: the grace period ends it.
func TestStopInsideAHandlerWaitsForTheGracePeriod(t *testing.T) {
	k := newKit(t)
	k.submit("last", "last_queue", nil)
	w := k.worker(worker.Config{Grace: 10 * time.Millisecond}, "last_queue")
	stopped := make(chan error, 1)
	worker.Handle(w, "last", func(ctx context.Context, _ worker.Step[any]) (any, error) {
		stopped <- w.Stop(context.WithoutCancel(ctx))
		return nil, nil
	})
	k.start(w)
	require.ErrorContains(t, receive(k, stopped, "the end of Stop"), "left behind: 1 ")
}

func TestStopTellsOfResultsThatCouldNotBeReported(t *testing.T) {
	k := newKit(t)
	k.submit("h", "lost_queue", nil, nil)
	w := k.worker(worker.Config{Grace: time.Millisecond}, "lost_queue")
	w.WindUpIn(100 * time.Millisecond)
	entered, release := make(chan struct{}, 2), make(chan struct{})
	worker.Handle(w, "h", func(context.Context, worker.Step[any]) (any, error) {
		entered <- struct{}{}
		<-release
		return nil, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- w.Run(ctx) }()
	receive(k, entered, "the first handler")
	receive(k, entered, "the second handler")
	_, err := k.pool.Exec(t.Context(), `alter function pawl.read_reports(jsonb) rename to read_reports_away`)
	require.NoError(t, err)
	close(release)
	cancel()
	require.ErrorContains(t, receive(k, ran, "the end of Run"), "could not be reported: 2 ")
}

func TestStopEndsAStartThatStillConnects(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never says a word
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, silent.Close()) })
	w, err := worker.New(worker.Config{DatabaseURL: "postgres://nobody@" + silent.Addr().String() + "/none", Queues: []worker.Queue{{Name: "q"}}})
	require.NoError(t, err)
	worker.Handle(w, "h", func(context.Context, worker.Step[any]) (any, error) { return nil, nil })
	started := make(chan error, 1)
	go func() { started <- w.Start(context.Background()) }()
	conn, err := silent.Accept()
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, w.Stop(t.Context()))
	require.EqualError(t, <-started, "starting worker: it was stopped meanwhile") // not that the database does not answer
}
