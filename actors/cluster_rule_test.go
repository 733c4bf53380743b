package actors_test

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/actors"
)

// A burst of requests from many producers, each sent twice, through several instances and workers: one task each, each
// step begun and ended once, the same seen by everybody, no deadlock.
func TestABurstThroughSeveralInstances(t *testing.T) {
	h := newHouse(t)
	for range 3 {
		h.start(actors.Config{Settings: actors.Settings{Batch: 5}})
	}
	for range 3 {
		h.work()
	}
	const tasks = 25
	var producers sync.WaitGroup
	for range tasks {
		id := uuid.Must(uuid.NewV7())
		for range 2 {
			producers.Go(func() {
				_, err := h.db.Exec(context.Background(), `select pgmq.send('orchestration_task_requests', jsonb_build_object('request_id', $1::text,
					'template', 'house/pair', 'input', '{"n": 1}'::jsonb, 'key', $1::text))`, id.String())
				assert.NoError(t, err)
			})
		}
	}
	producers.Wait()
	h.eventually(tasks, completed)
	h.eventually(tasks, `select count(*) from pawl.absorbed where queue = 'orchestration_task_requests'`)
	require.Equal(t, tasks, h.count(`select count(*) from pawl.tasks`))
	require.Equal(t, 2*tasks, h.count(`select count(*) from pawl.audit where event = 'started'`))
	require.Equal(t, 2*tasks, h.count(`select count(*) from pawl.audit where step is not null and to_state = 'complete'`))
	require.Zero(t, h.count(`select count(*) from (select from pawl.audit group by task_id, step, index, revision having count(*) > 1) x`))
	require.Zero(t, h.count(`select count(*) from pawl.dead_letters`))
	require.Zero(t, h.count(`select count(*) from pawl.repairs`))
	require.Zero(t, h.count(`select deadlocks from pg_stat_database where datname = current_database()`))
	for range 3 { // connections of other instances
		other := newPool(t, h.url, "")
		var seen int
		require.NoError(t, other.QueryRow(t.Context(), completed).Scan(&seen))
		require.Equal(t, tasks, seen)
	}
}
