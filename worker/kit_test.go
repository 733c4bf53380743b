package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/worker"
)

// patience is how long tests wait for what must come.
const patience = 60 * time.Second

// kit is a database with the engine's work done by the test's own calls.
type kit struct {
	*testing.T
	pool *pgxpool.Pool
}

func newKit(t *testing.T) *kit {
	t.Parallel()
	return &kit{T: t, pool: pgtest.DB(t)}
}

// queue makes a queue by naming it, as a first request would.
func (k *kit) queue(name string) { k.template("some.handler", name) }

// template makes that of a handler's steps on a queue. Its retries come after the test: none is over before it is seen.
func (k *kit) template(handler, queue string) (id int) {
	k.Helper()
	require.NoError(k, k.pool.QueryRow(k.Context(), `select pawl.adhoc_template('default', $1, $2)`, handler, queue).Scan(&id))
	_, err := k.pool.Exec(k.Context(), `update pawl.template_steps set base_ms = max_ms where template_id = $1`, id)
	require.NoError(k, err)
	return id
}

// submit makes tasks of one step.
func (k *kit) submit(handler, queue string, inputs ...any) []uuid.UUID {
	k.Helper()
	template := k.template(handler, queue)
	var bodies []string
	for _, input := range inputs {
		text, err := json.Marshal(map[string]any{"handler": handler, "queue": queue, "input": input})
		require.NoError(k, err)
		bodies = append(bodies, string(text))
	}
	rows, err := k.pool.Query(k.Context(), `
		with sent as materialized (select id from pgmq.send_batch('orchestration_task_requests', $1::text[]::jsonb[]) s(id))
		select jsonb_agg(jsonb_build_object('msg_id', id, 'template_id', $2::int))::text from sent`, bodies, template)
	require.NoError(k, err)
	var messages string
	for rows.Next() {
		require.NoError(k, rows.Scan(&messages))
	}
	require.NoError(k, rows.Err())
	return k.process(messages)
}

func (k *kit) process(messages string) (ids []uuid.UUID) {
	k.Helper()
	var answer []byte
	require.NoError(k, k.pool.QueryRow(k.Context(), `select pawl.process_task_requests($1::text::jsonb, 'test')`, messages).Scan(&answer))
	var outcomes []struct {
		TaskID  uuid.UUID `json:"task_id"`
		Outcome string    `json:"outcome"`
	}
	require.NoError(k, json.Unmarshal(answer, &outcomes))
	for _, outcome := range outcomes {
		require.Equal(k, "created", outcome.Outcome, "%s", answer)
		ids = append(ids, outcome.TaskID)
	}
	return ids
}

// settle does what the orchestrator does with results that met a locked task, and with time.
func (k *kit) settle() {
	k.Helper()
	_, err := k.pool.Exec(k.Context(), `select pawl.apply_step_results(array(select msg_id from pgmq.q_orchestration_step_results), 'test')`)
	require.NoError(k, err)
	_, err = k.pool.Exec(k.Context(), `select pawl.fire_due(100, 'test')`)
	require.NoError(k, err)
}

// row is what tests look at of a step.
type row struct {
	TaskState, State, Worker, Result string
	Attempt, Deliveries              int
	Error                            struct {
		Type, Message string
		Retryable     bool
		RetryAfter    float64 `json:"retry_after"`
	}
}

func (k *kit) step(task uuid.UUID, step string) (r row) {
	k.Helper()
	var failure []byte
	require.NoError(k, k.pool.QueryRow(k.Context(), `select t.state, s.state, coalesce(s.worker, ''), coalesce(s.result::text, ''),
		s.attempt, s.deliveries, s.error::text from pawl.steps s join pawl.tasks t using (task_id)
		where task_id = $1 and step = $2`, task, step).Scan(&r.TaskState, &r.State, &r.Worker, &r.Result, &r.Attempt, &r.Deliveries, &failure))
	if failure != nil {
		require.NoError(k, json.Unmarshal(failure, &r.Error))
	}
	return r
}

// await waits until the step of a one-step task is in a state.
func (k *kit) await(task uuid.UUID, state string) (r row) {
	k.Helper()
	k.eventually(func() bool {
		k.settle()
		r = k.step(task, "run")
		return r.State == state
	}, "step of %s becomes %s", task, state)
	return r
}

func (k *kit) eventually(condition func() bool, what ...any) {
	k.Helper()
	require.Eventually(k, condition, patience, 10*time.Millisecond, what...)
}

func (k *kit) count(sql string, arguments ...any) (n int) {
	k.Helper()
	require.NoError(k, k.pool.QueryRow(k.Context(), sql, arguments...).Scan(&n))
	return n
}

// expire ends the leases of a queue's messages, as time would.
func (k *kit) expire(queue string) {
	k.Helper()
	_, err := k.pool.Exec(k.Context(), fmt.Sprintf(`update pgmq.q_%s set vt = clock_timestamp()`, queue))
	require.NoError(k, err)
}

// leases sets the length of the leases of a queue's steps that are yet to be made. Shorter than a second is for tests.
func (k *kit) leases(handler string, length time.Duration) {
	k.Helper()
	_, err := k.pool.Exec(k.Context(), `update pawl.template_steps set lease_ms = $1 where handler = $2`, length.Milliseconds(), handler)
	require.NoError(k, err)
}

// worker makes a worker for some queues; tests register handlers and start it.
func (k *kit) worker(config worker.Config, queues ...string) *worker.Worker {
	k.Helper()
	if config.Pool == nil {
		config.Pool = k.pool
	}
	for _, name := range queues {
		config.Queues = append(config.Queues, worker.Queue{Name: name})
	}
	if config.Log == nil {
		config.Log = slog.New(slog.NewTextHandler(logWriter(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	w, err := worker.New(config)
	require.NoError(k, err)
	k.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := w.Stop(ctx); err != nil { // some tests leave handlers behind
			k.Log(err)
		}
	})
	return w
}

func (k *kit) start(w *worker.Worker) {
	k.Helper()
	require.NoError(k, w.Start(k.Context()))
}

func logWriter() *os.File {
	if testing.Verbose() {
		return os.Stderr
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	return null
}

// receive takes a value that must come.
func receive[T any](k *kit, from <-chan T, what string) (value T) {
	k.Helper()
	select {
	case value = <-from:
	case <-time.After(patience):
		require.Fail(k, "waiting for "+what)
	}
	return value
}
