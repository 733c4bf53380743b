package worker

import (
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// A report that is dropped, since too many are refused, counts as one that could not be made.
func TestADroppedReportIsCounted(t *testing.T) {
	t.Parallel()
	w, err := New(Config{DatabaseURL: "postgres://", Queues: []Queue{{Name: "a_queue"}}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	l := w.newLane(Queue{Name: "a_queue", Concurrency: 1})
	for id := range int64(maxApart + 2) {
		d := &delivery{MsgID: id, lane: l}
		l.held[id] = d
		l.setAside([]*outcome{{delivery: d}}, &pgconn.PgError{Code: "23514"})
	}
	require.Len(t, l.apart, maxApart)
	require.Equal(t, maxApart+2, l.unreported())
	require.Len(t, l.held, maxApart)
}
