package sql_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestFiftyCallersActOnce(t *testing.T) {
	k := newCommittingKit(t)
	invoices(k, nil)
	tasks := make([]uuid.UUID, 50)
	for i := range tasks {
		tasks[i] = k.pay("A-1", "admin")
	}
	var wait sync.WaitGroup
	for n := range 8 {
		wait.Go(func() {
			for range 20 {
				_, err := k.pool.Exec(k.Context(), `select pawl.report_steps('work_queue', (select coalesce(jsonb_agg(jsonb_build_object('msg_id', c->'msg_id', 'read_ct', c->'read_ct', 'status', 'complete')), '[]')
					from jsonb_array_elements(pawl.claim_steps('work_queue', 3, $1)::jsonb) c where c->>'step' = 'pay'), $1)`, fmt.Sprint("w", n))
				require.NoError(k, err)
			}
		})
	}
	wait.Wait()
	require.Eventually(k, func() bool {
		k.Expire("work_queue")
		k.work("work_queue")
		return get[int](k, "select count(*) from pawl.tasks where finalized_at is not null") == 50
	}, time.Minute, 20*time.Millisecond)
	require.Equal(k, 1, get[int](k, "select count(*) from pawl.tasks where state = 'complete'"))
	require.Equal(k, 49, get[int](k, "select count(*) from pawl.tasks where error->>'type' = 'claim_failed'"))
	require.Equal(k, 1, get[int](k, "select count(*) from pawl.audit where step = 'pay' and event = 'started' and processor like 'w%'"))
	require.Equal(k, "paid 3", k.invoice("A-1"))
	k.sound()
}
