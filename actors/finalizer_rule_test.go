package actors_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/actors"
	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/internal/telemetry"
)

// complaints keeps the lines of a log that are warnings or worse.
type complaints struct {
	slog.Handler
	mu    sync.Mutex
	lines []string // mu
}

func (c *complaints) Enabled(context.Context, slog.Level) bool { return true }

func (c *complaints) WithAttrs([]slog.Attr) slog.Handler { return c }

func (c *complaints) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		c.mu.Lock()
		defer c.mu.Unlock()
		line := r.Message
		r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
		c.lines = append(c.lines, line)
	}
	return nil
}

// Four orchestrators are each told three times that a task may be at its end. Each task ends once, and nobody complains.
func TestFinalizersAtOnceWriteNoErrorLine(t *testing.T) {
	h := newHouse(t)
	h.exec(`update pawl.engine_settings set staged = true`)
	h.exec(`create function thrice() returns trigger language plpgsql as $$ begin
		if pg_trigger_depth() = 1 then
			insert into pgmq.q_orchestration_task_finalizations (vt, message) select n.vt, n.message from fresh n, generate_series(1, 3);
		end if; return null; end $$`)
	h.exec(`create trigger thrice after insert on pgmq.q_orchestration_task_finalizations
		referencing new table as fresh for each statement execute function thrice()`)
	log := &complaints{Handler: slog.DiscardHandler}
	for range 4 {
		metrics, err := telemetry.NewMetrics(prometheus.NewRegistry())
		require.NoError(t, err)
		system, err := actors.Start(t.Context(), actors.Config{Work: h.db, Heartbeats: h.db, Metrics: metrics, Log: slog.New(log),
			Settings: actors.Settings{IdlePoll: 20 * time.Millisecond, Batch: 2}, Processor: store.Processor{ID: uuid.New(), Kind: "orchestrator", Host: "test", PID: 1, Version: "test"}})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, system.Stop(context.Background())) })
	}
	h.work()
	for range 40 {
		h.request()
	}
	h.eventually(40, completed)
	h.eventually(0, `select count(*) from pgmq.q_orchestration_task_finalizations`)
	require.Equal(t, 40, h.count(`select count(*) from pawl.audit where step is null and to_state = 'complete'`))
	require.Zero(t, h.count(`select count(*) from pawl.dead_letters`))
	require.Zero(t, h.count(`select deadlocks from pg_stat_database where datname = current_database()`))
	log.mu.Lock()
	defer log.mu.Unlock()
	require.Empty(t, log.lines)
}
