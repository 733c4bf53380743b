package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/actors"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/internal/telemetry"
)

// patience is how long a condition may take on a busy machine.
const patience = 60 * time.Second

// house is a database with a template of two steps (house/pair: first, then second, on house_queue).
type house struct {
	*testing.T
	url string
	db  *pgxpool.Pool
}

const pair = `{"namespace": "house", "name": "pair", "version": "1", "input_schema": {"type": "object",
	"properties": {"n": {"type": "integer"}}}, "steps": [
	{"no": 0, "name": "first", "handler": "house.first", "queue": "house_queue", "needs": []},
	{"no": 1, "name": "second", "handler": "house.second", "queue": "house_queue", "needs": [{"no": 0}]}]}`

func newHouse(t *testing.T) *house {
	t.Helper()
	t.Parallel()
	url := pgtest.URL(t)
	h := &house{T: t, url: url, db: newPool(t, url, "")}
	h.exec(`select pawl.register_template($1)`, pair)
	return h
}

// newPool is closed before the database is dropped. parameters are added to the URL.
func newPool(t *testing.T, url, parameters string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	config.MaxConns = 8
	if parameters != "" {
		config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, parameters)
			return err
		}
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func (h *house) exec(sql string, args ...any) {
	h.Helper()
	_, err := h.db.Exec(h.Context(), sql, args...)
	require.NoError(h, err)
}

func (h *house) count(sql string, args ...any) (n int) {
	h.Helper()
	require.NoError(h, h.db.QueryRow(h.Context(), sql, args...).Scan(&n))
	return n
}

// eventually waits until the query counts want.
func (h *house) eventually(want int, sql string, args ...any) {
	h.Helper()
	got := -1
	require.Eventually(h, func() bool {
		return h.db.QueryRow(h.Context(), sql, args...).Scan(&got) == nil && got == want
	}, patience, 10*time.Millisecond, "%s", sql)
}

// request sends a task request and returns the task's id.
func (h *house) request() uuid.UUID {
	h.Helper()
	id := uuid.Must(uuid.NewV7())
	h.exec(`select pgmq.send('orchestration_task_requests', jsonb_build_object('request_id', $1::text,
		'template', 'house/pair', 'input', '{"n": 1}'::jsonb))`, id.String())
	return id
}

// send puts a message into a queue and returns its id.
func (h *house) send(queue, body string) (id int64) {
	h.Helper()
	require.NoError(h, h.db.QueryRow(h.Context(), `select pgmq.send($1, $2::jsonb)`, queue, body).Scan(&id))
	return id
}

// work is a worker that completes every step of house_queue until the test ends.
func (h *house) work() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.Context()))
	done := make(chan struct{})
	h.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			var claimed []byte
			if h.db.QueryRow(ctx, `select pawl.claim_steps('house_queue', 100, 'tester')`).Scan(&claimed) == nil {
				h.report(ctx, claimed)
			}
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
}

func (h *house) report(ctx context.Context, claimed []byte) {
	var steps []struct {
		MsgID  int64 `json:"msg_id"`
		ReadCT int   `json:"read_ct"`
	}
	if json.Unmarshal(claimed, &steps) != nil || len(steps) == 0 {
		return
	}
	reports := make([]map[string]any, 0, len(steps))
	for _, s := range steps {
		reports = append(reports, map[string]any{"msg_id": s.MsgID, "read_ct": s.ReadCT, "status": "complete", "result": map[string]any{}})
	}
	body, err := json.Marshal(reports)
	if err == nil {
		_, _ = h.db.Exec(ctx, `select pawl.report_steps('house_queue', $1::jsonb, 'tester')`, string(body)) // else it is redelivered
	}
}

// crew is a running system with its metrics.
type crew struct {
	*actors.System
	house   *house
	metrics *telemetry.Metrics
}

// start starts actors that look every 50 ms and restart quickly, and stops them before the database goes.
func (h *house) start(config actors.Config) *crew {
	h.Helper()
	metrics, err := telemetry.NewMetrics(prometheus.NewRegistry())
	require.NoError(h, err)
	config.Metrics = metrics
	if config.Work == nil {
		config.Work = h.db
	}
	config.Heartbeats = h.db
	config.Processor = store.Processor{ID: uuid.New(), Kind: "orchestrator", Host: "test", PID: 1, Version: "test"}
	if config.IdlePoll == 0 {
		config.IdlePoll = 50 * time.Millisecond
	}
	config.RestartMin = time.Millisecond
	if config.Log == nil {
		config.Log = slog.New(slog.NewTextHandler(testLog{h.T}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	system, err := actors.Start(h.Context(), config)
	require.NoError(h, err)
	c := &crew{System: system, house: h, metrics: metrics}
	h.Cleanup(func() { _ = c.stop(patience) }) // the tests of Stop look at its error
	return c
}

func (c *crew) stop(within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return c.Stop(ctx)
}

func (c *crew) restarts(name string) int {
	return c.value(c.metrics.Restarts.WithLabelValues(name))
}

func (c *crew) value(counter prometheus.Counter) int {
	var m dto.Metric
	require.NoError(c.house, counter.Write(&m))
	return int(m.GetCounter().GetValue())
}

// testLog keeps the log with its test.
type testLog struct{ t *testing.T }

func (l testLog) Write(line []byte) (int, error) {
	if l.t.Context().Err() == nil { // after its end, t.Log panics
		l.t.Log(string(line))
	}
	return len(line), nil
}

// faulty is a database that fails when it is asked for something.
type faulty struct {
	store.DB
	fail func(sql string, args []any) error // may panic
}

func (f *faulty) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := f.fail(sql, args); err != nil {
		return failedRow{err}
	}
	return f.DB.QueryRow(ctx, sql, args...)
}

func (f *faulty) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := f.fail(sql, args); err != nil {
		return nil, err
	}
	return f.DB.Query(ctx, sql, args...)
}

func (f *faulty) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := f.fail(sql, args); err != nil {
		return pgconn.CommandTag{}, err
	}
	return f.DB.Exec(ctx, sql, args...)
}

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return fmt.Errorf("asking a faulty database: %w", r.err) }
