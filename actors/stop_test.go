package actors_test

import (
	"bytes"
	"context"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/actors"
	"github.com/pawl-dev/pawl/messaging/pgmq"
)

func connect(url string) func(context.Context) (*pgx.Conn, error) {
	return func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, url) }
}

func TestStopFinishesWhatWasRead(t *testing.T) {
	h := newHouse(t)
	reached, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c := h.start(actors.Config{Work: &faulty{h.db, func(sql string, _ []any) error {
		if strings.Contains(sql, "process_task_requests") {
			once.Do(func() { close(reached); <-goOn })
		}
		return nil
	}}})
	h.request()
	<-reached
	later := h.send("orchestration_task_requests", `{"template": "house/pair", "input": {}}`)
	stopped := make(chan error)
	go func() { stopped <- c.stop(patience) }()
	close(goOn)
	require.NoError(t, <-stopped)
	require.Equal(t, 1, h.count(`select count(*) from pawl.tasks`), "what was read is worked")
	require.Equal(t, 1, h.count(`select count(*) from pgmq.q_orchestration_task_requests where msg_id = $1 and read_ct = 0`, later),
		"nothing more is read")
	require.NoError(t, c.stop(patience), "stopping again changes nothing")
}

func TestStopBreaksOffWhatDoesNotEndInTime(t *testing.T) {
	h := newHouse(t)
	lock, err := h.db.Begin(t.Context())
	require.NoError(t, err)
	_, err = lock.Exec(t.Context(), `lock table pawl.tasks in access exclusive mode`)
	require.NoError(t, err)
	c := h.start(actors.Config{Settings: actors.Settings{VisibilityTimeout: 2 * time.Second}})
	h.request()
	h.eventually(1, `select count(*) from pgmq.q_orchestration_task_requests where read_ct > 0`)
	require.ErrorIs(t, c.stop(time.Millisecond), context.DeadlineExceeded)
	require.NoError(t, lock.Rollback(t.Context()))
	require.Zero(t, h.count(`select count(*) from pawl.tasks`))

	h2 := *h // another process takes over
	h2.start(actors.Config{})
	h.eventually(1, `select count(*) from pawl.tasks`)
}

func TestNoGoroutineIsLeft(t *testing.T) {
	h := newHouse(t)
	h.request()
	mark := "actors " + h.Name()
	pprof.Do(t.Context(), pprof.Labels("owner", mark), func(ctx context.Context) {
		listener, err := pgmq.NewListener(pgmq.ListenerConfig{Connect: connect(h.url), Probe: h.db})
		require.NoError(t, err)
		require.NoError(t, listener.Start(ctx))
		var panicked sync.Once
		c := h.start(actors.Config{Listener: listener, Settings: actors.Settings{VisibilityTimeout: 300 * time.Millisecond},
			Work: &faulty{h.db, func(sql string, _ []any) error {
				if strings.Contains(sql, "process_task_requests") {
					panicked.Do(func() { panic("once") })
				}
				return nil
			}}})
		h.eventually(1, `select count(*) from pawl.tasks`)
		require.NoError(t, c.stop(patience))
		listener.Stop()
	})
	require.Eventually(t, func() bool {
		var profile bytes.Buffer
		require.NoError(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
		return !strings.Contains(profile.String(), mark)
	}, patience, 50*time.Millisecond, "a goroutine outlives Stop")
}
