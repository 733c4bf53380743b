package store_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/messaging"
)

// R13: a request over the limit stays in the server, with its size told; results never leave it.
func TestLargeBodiesAndResultsStayInTheServer(t *testing.T) {
	t.Parallel()
	db := pgtest.DB(t)
	send := func(queue, body string) {
		_, err := db.Exec(t.Context(), `select pgmq.send($1, $2::text::jsonb)`, queue, body)
		require.NoError(t, err)
	}
	large := `{"text": "` + strings.Repeat("x", 3*messaging.MaxBody) + `"}`
	bounds := store.Bounds{Messages: 10, Bytes: 1 << 30, LeaseMS: 30_000}
	send(messaging.TaskRequests, `{"small": 1}`)
	send(messaging.TaskRequests, large)
	read, err := store.ReadRequests(t.Context(), db, bounds)
	require.NoError(t, err)
	require.Len(t, read, 2)
	require.JSONEq(t, `{"small": 1}`, string(read[0].Body))
	require.Nil(t, read[1].Body)
	require.Equal(t, len(large), read[1].Size)

	for _, queue := range []string{messaging.StepResults, messaging.StepEnqueues, messaging.TaskFinalizations} {
		send(queue, `{"result": "secret"}`)
		read, err := store.Read(t.Context(), db, queue, bounds)
		require.NoError(t, err)
		require.Len(t, read, 1)
		require.Nil(t, read[0].Body, queue)
	}
}
