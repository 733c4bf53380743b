package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/messaging"
)

// However long a request waits for a newer program or a template that is parked, it comes to be worked as if it were new.
func TestWaitingIsNoDelivery(t *testing.T) {
	t.Parallel()
	db := pgtest.DB(t)
	_, err := db.Exec(t.Context(), `select pgmq.send($1, '{"v": 2}')`, messaging.TaskRequests)
	require.NoError(t, err)
	for range 12 {
		_, err := db.Exec(t.Context(), `update pgmq.q_orchestration_task_requests set vt = clock_timestamp()`)
		require.NoError(t, err)
		read, err := store.ReadRequests(t.Context(), db, store.Bounds{Messages: 10, Bytes: 1 << 20, LeaseMS: 30_000})
		require.NoError(t, err)
		require.Len(t, read, 1)
		require.Equal(t, 1, read[0].ReadCount)
		require.NoError(t, store.PutBack(t.Context(), db, read))
		require.NoError(t, store.PutBack(t.Context(), db, read), "a batch that failed is worked again")
	}
	read, err := store.ReadRequests(t.Context(), db, store.Bounds{Messages: 10, Bytes: 1 << 20, LeaseMS: 30_000})
	require.NoError(t, err)
	require.Empty(t, read, "it waits for a minute")
}
