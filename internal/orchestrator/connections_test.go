package orchestrator_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/actors"
	"github.com/pawl-dev/pawl/internal/orchestrator"
	"github.com/pawl-dev/pawl/internal/pgtest"
)

// Two orchestrators with pools of two connections, under load of workers with one connection each: everything ends, no
// actor waits for a connection that another one holds while it waits.
func TestTwoConnectionsAreEnoughUnderLoad(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	exec(t, url, `select pawl.register_template($1)`, `{"namespace": "load", "name": "chain", "version": "1", "steps": [
		{"no": 0, "name": "a", "handler": "load.a", "queue": "load_queue", "needs": []},
		{"no": 1, "name": "b", "handler": "load.b", "queue": "load_queue", "needs": [0]},
		{"no": 2, "name": "c", "handler": "load.c", "queue": "load_queue", "needs": [1]}]}`)
	exec(t, url, `update pawl.engine_settings set staged = true`) // every hop through an actor
	for range 2 {
		start(t, orchestrator.Config{DatabaseURL: url, Connections: 2, Settings: actors.Settings{
			Batch: 10, RequestLoops: 2, ResultLoops: 3, IdlePoll: 20 * time.Millisecond, ReconcileEvery: 50 * time.Millisecond,
			SweepEvery: 50 * time.Millisecond, HeartbeatEvery: 50 * time.Millisecond}})
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	for range 3 {
		conn, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				_, _ = conn.Exec(ctx, `select pawl.report_steps('load_queue', (select coalesce(jsonb_agg(jsonb_build_object('msg_id', c->'msg_id',
					'read_ct', c->'read_ct', 'status', 'complete', 'result', 1)), '[]') from json_array_elements(pawl.claim_steps('load_queue', 10, 'w')) c), 'w')`)
			}
		}()
		t.Cleanup(func() { cancel(); <-done; _ = conn.Close(context.Background()) })
	}
	exec(t, url, `select pgmq.send('orchestration_task_requests', '{"template": "load/chain", "input": {}}') from generate_series(1, 150)`)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	var complete, deadlocks, repairs int
	require.Eventually(t, func() bool {
		return pool.QueryRow(t.Context(), `select count(*) from pawl.tasks where state = 'complete'`).Scan(&complete) == nil && complete == 150
	}, 2*patience, 50*time.Millisecond)
	require.NoError(t, pool.QueryRow(t.Context(), `select deadlocks, (select count(*) from pawl.repairs) from pg_stat_database
		where datname = current_database()`).Scan(&deadlocks, &repairs))
	require.Zero(t, deadlocks)
	require.Zero(t, repairs)
}
