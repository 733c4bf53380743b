package actors_test

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/actors"
	"github.com/pawl-dev/pawl/messaging/pgmq"
)

// R5: notifications are hints. Without a single one, over connections as a transaction pooler gives them (no prepared
// statement, no LISTEN), tasks end.
func TestPollingAloneIsEnough(t *testing.T) {
	h := newHouse(t)
	h.exec(`update pawl.engine_settings set announce = false, staged = true`)
	config, err := pgxpool.ParseConfig(h.url)
	require.NoError(t, err)
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	config.MaxConns = 4
	pooled, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pooled.Close)
	deaf, err := h.db.Acquire(t.Context())
	require.NoError(t, err)
	defer deaf.Release()
	for _, channel := range []string{"pgmq.q_orchestration_task_requests.INSERT", "pgmq.q_house_queue.INSERT", "pgmq.q_orchestration_step_results.INSERT"} {
		_, err = deaf.Exec(t.Context(), "listen "+pgx.Identifier{channel}.Sanitize())
		require.NoError(t, err)
	}
	var looks atomic.Int32 // of the idle poll
	for range 2 {
		h.start(actors.Config{Work: &faulty{pooled, func(sql string, _ []any) error {
			if strings.Contains(sql, "where exists") {
				looks.Add(1)
			}
			return nil
		}}})
	}
	h.work()
	for range 10 {
		h.request()
	}
	h.eventually(10, completed)
	idle := looks.Load() + 80 // by then nobody looks again because of what was there before
	require.Eventually(t, func() bool { return looks.Load() > idle }, patience, 20*time.Millisecond)
	h.request()
	h.eventually(11, completed)
	// A notification arrives before the next one: only the test's own does.
	h.exec(`select pg_notify('pgmq.q_house_queue.INSERT', 'the test')`)
	n, err := deaf.Conn().WaitForNotification(t.Context())
	require.NoError(t, err)
	require.Equal(t, "the test", n.Payload, "nothing was announced")
}

// A pooler that mixes prepared statements up stops everything, loses nothing, and its cure is told.
func TestAPoolerThatMixesUpStatementsLosesNothingAndIsToldOf(t *testing.T) {
	h := newHouse(t)
	text := new(strings.Builder)
	var mixed atomic.Int32
	c := h.start(actors.Config{
		Log:      slog.New(slog.NewTextHandler(text, nil)),                              // handlers lock
		Settings: actors.Settings{VisibilityTimeout: 3 * time.Second, MaxDeliveries: 2}, // long enough for a busy machine: a timeout alone would count
		Work: &faulty{h.db, func(sql string, _ []any) error {
			if strings.Contains(sql, "process_task_requests") && mixed.Add(1) <= 4 {
				return &pgconn.PgError{Code: []string{"26000", "42P05"}[mixed.Load()%2]}
			}
			return nil
		}},
	})
	h.work()
	h.request()
	h.eventually(1, completed)
	require.Zero(t, h.count(`select count(*) from pawl.dead_letters`))
	require.NoError(t, c.stop(patience))
	require.Contains(t, text.String(), "default_query_exec_mode=exec")
}

// R5: no payload is trusted. Notifications that nobody of ours sent, with whatever in them, change nothing.
func TestForgedNotificationsChangeNothing(t *testing.T) {
	h := newHouse(t)
	listener, err := pgmq.NewListener(pgmq.ListenerConfig{Connect: connect(h.url), Probe: h.db})
	require.NoError(t, err)
	require.NoError(t, listener.Start(t.Context()))
	t.Cleanup(listener.Stop)
	c := h.start(actors.Config{Listener: listener, Settings: actors.Settings{IdlePoll: time.Hour, ProvenPoll: time.Hour}})
	h.work()
	require.Eventually(t, listener.Proven, patience, 10*time.Millisecond)
	for _, queue := range []string{"orchestration_task_requests", "orchestration_step_enqueues", "orchestration_step_results",
		"orchestration_task_finalizations", "house_queue", "nobodys_queue"} {
		for _, payload := range []string{"", "null", `{"msg_id": 1, "task_id": "x"}`, "'; drop table pawl.tasks; --", "\x01"} {
			h.exec(`select pg_notify('pgmq.q_' || $1 || '.INSERT', $2)`, queue, payload)
		}
	}
	h.request()
	h.eventually(1, completed)
	require.Zero(t, h.count(`select count(*) from pawl.dead_letters`))
	require.Zero(t, h.count(`select count(*) from pawl.absorbed`))
	require.Zero(t, c.restarts("task_request"))
	require.Equal(t, 1, h.count(`select count(*) from pawl.tasks`))
}
