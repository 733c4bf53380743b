package e2e

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/test/kit"
	"github.com/pawl-dev/pawl/workflow"
)

const diamond = `
namespace: e2e
name: diamond
retry: {max_attempts: 3, backoff: fixed, base: 100ms}
steps:
  - {name: first, handler: e2e.first, lease: 2s}
  - {name: left, handler: e2e.left, needs: [first], lease: 2s}
  - {name: right, handler: e2e.right, needs: [first], lease: 2s}
  - {name: last, handler: e2e.last, needs: [left, right], lease: 2s}
`

const (
	tasks = 1000
	kills = 10
)

// Any process may be killed at any moment: everything finishes, nothing has to be repaired, nothing deadlocks.
func TestTenKillsAmongAThousandTasks(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(kit.Seed(t), 0))
	url := pgtest.URL(t)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	prepare(t, pool)

	orchestrator, echo := binary(t, "orchestrator"), binary(t, "echoworker")
	env := []string{"PAWL_DATABASE_URL=" + url, "PAWL_LISTEN=off", "PAWL_VISIBILITY_TIMEOUT=2s", "PAWL_CONNECTIONS=4", "PAWL_RECONCILE_EVERY=1s"}
	processes := []*process{
		startProcess(t, "orchestrator-1", orchestrator, env...), startProcess(t, "orchestrator-2", orchestrator, env...),
		startProcess(t, "worker-1", echo, env...), startProcess(t, "worker-2", echo, env...),
	}
	submit(t, pool)

	// Each kill falls at a random point of the work done, so that none comes after the end on a fast machine.
	for i := range kills {
		from := tasks * i / (kills + 2)
		at := from + random.IntN(tasks/(kills+2))
		victim := processes[random.IntN(len(processes))]
		require.Eventually(t, func() bool { return ended(t, pool) >= at }, deadline, 5*time.Millisecond, "waiting for %d tasks", at)
		t.Logf("kill -9 %s at %d of %d tasks", victim.name, ended(t, pool), tasks)
		victim.kill()
		victim.start()
	}
	require.Eventually(t, func() bool { return ended(t, pool) == tasks }, deadline, 50*time.Millisecond, "waiting for the rest")

	require.Equal(t, tasks, count(t, pool, "select count(*) from pawl.tasks where state = 'complete'"))
	require.Equal(t, 4*tasks, count(t, pool, "select count(*) from pawl.steps where state = 'complete'"))
	require.Equal(t, 4*tasks, count(t, pool, "select count(*) from e2e.effects"))
	require.Zero(t, count(t, pool, "select count(*) from pawl.repairs"), "repairs")
	require.Zero(t, count(t, pool, "select count(*) from pawl.dead_letters"), "dead letters")
	require.Zero(t, count(t, pool, "select deadlocks from pg_stat_database where datname = current_database()"), "deadlocks")
	require.Eventually(t, func() bool {
		return count(t, pool, "select coalesce(sum(m.queue_length), 0)::int from pawl.queues q, pgmq.metrics(q.queue) m") == 0
	}, deadline, 50*time.Millisecond, "messages are left")
	t.Logf("%d steps were delivered again", count(t, pool, "select count(*) from pawl.steps where deliveries > 1"))
}

func ended(t *testing.T, pool *pgxpool.Pool) int {
	return count(t, pool, "select count(finalized_at) from pawl.tasks")
}

func prepare(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), "create schema e2e; create table e2e.effects (token text primary key)")
	require.NoError(t, err)
	templates, err := workflow.ParseTemplates("diamond", []byte(diamond))
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), "select pawl.register_template($1)", string(templates[0].Definition()))
	require.NoError(t, err)
}

// submit sends the requests in the background, in batches, while the processes work.
func submit(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	done := make(chan error, 1)
	ctx := t.Context()
	go func() {
		const batch = 50
		for from := 0; from < tasks; from += batch {
			_, err := pool.Exec(ctx, `select pgmq.send_batch('orchestration_task_requests', array(select jsonb_build_object(
				'template', 'e2e/diamond', 'input', jsonb_build_object('n', i), 'key', i::text) from generate_series($1::int, $2::int) i))`,
				from+1, from+batch)
			if err != nil {
				done <- fmt.Errorf("sending: %w", err)
				return
			}
		}
		done <- nil
	}()
	t.Cleanup(func() { require.NoError(t, <-done) })
}
