package cli

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

func TestARequestWithoutATaskSaysWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.apply(diamond)
	const id, unknown = "0190aaaa-0000-7000-8000-000000000002", "0190aaaa-0000-7000-8000-000000000003"
	o := s.run("submit", "test/diamond", "--key", "K", "--request-id", id, "--wait", "--timeout", "200ms")
	require.Equal(t, ExitTimeout, o.code, o.err)
	require.Contains(t, o.err, "no orchestrator has taken request "+id+" within the time that --timeout gives; it stays sent")
	explained := s.ok("task", "explain", id)
	require.Contains(t, explained, "request "+id)
	require.Contains(t, explained, "it waits in orchestration_task_requests, and no orchestrator has a heartbeat")
	shown := s.run("task", "show", id)
	require.Equal(t, ExitNotFound, shown.code)
	require.Contains(t, shown.err, "there is no task "+id+"; of the request with this id: it waits in")

	s.sql("select pgmq.send('orchestration_task_requests', $1::jsonb)::text", `{"template": "test/none", "input": {}, "request_id": "`+unknown+`"}`)
	s.engine()
	s.ok("task", "wait", id)
	same := s.run("submit", "test/diamond", "--key", "K", "--request-id", unknown[:35]+"4", "--input", "{}")
	require.Equal(t, ExitOK, same.code, same.err)
	require.Contains(t, s.ok("task", "explain", unknown[:35]+"4"), "task "+id+", which holds its key or id, has it")
	require.Contains(t, s.ok("task", "explain", unknown), "UnknownTemplate")
	waited := s.run("task", "wait", unknown)
	require.Equal(t, ExitNotFound, waited.code)
	require.Contains(t, waited.err, "UnknownTemplate")
	require.Contains(t, waited.err, "pawl dead list shows it")
}

// A request that becomes a task while it is asked for is one or the other, never unknown.
func TestARequestIsKnownWhileItIsTaken(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.apply(diamond)
	s.engine()
	pool, err := pgxpool.New(t.Context(), s.url)
	require.NoError(t, err)
	defer pool.Close()
	db := &database{Pool: pool}
	for range 100 {
		id := uuid.New().String()
		s.sql("select pgmq.send('orchestration_task_requests', $1::jsonb)::text", `{"template": "test/diamond", "input": {}, "request_id": "`+id+`"}`)
		for there := false; !there; {
			_, err := findTask(t.Context(), db, id)
			var request *taskless
			require.True(t, err == nil || errors.As(err, &request), "%v", err)
			there = err == nil
		}
	}
}
