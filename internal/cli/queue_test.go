package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQueuesAreListedPausedAndLimited(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	require.Contains(t, s.ok("queue", "list"), "No queues yet")
	s.apply(diamond)
	require.Len(t, decode[[]queueRow](s, "queue", "list"), 1)
	require.Len(t, decode[[]queueRow](s, "queue", "list", "--all"), 5)

	s.ok("queue", "pause", "test_queue", "--reason", "a test")
	require.Regexp(t, `test_queue +0 +0 +0 +- +paused`, s.ok("queue", "list"))
	s.ok("queue", "resume", "test_queue", "--reason", "a test")
	s.ok("queue", "configure", "test_queue", "--rate-limit", "100/sec", "--burst", "20", "--max-concurrency", "8", "--reason", "a test")
	require.Contains(t, s.ok("queue", "list"), "100 per 1s, burst 20, 8 at once")
	s.ok("queue", "configure", "test_queue", "--rate-limit", "none", "--burst", "none", "--max-concurrency", "none", "--reason", "a test")
	require.Regexp(t, `test_queue +0 +0 +0 +- +-`, s.ok("queue", "list"))
	require.Equal(t, "4", s.sql("select count(*)::text from pawl.operations where queue = 'test_queue' and reason = 'a test'"))

	many := s.run("queue", "configure", "test_queue", "--max-concurrency", "many", "--reason", "x")
	require.Equal(t, ExitUsage, many.code)
	require.Contains(t, many.err, "write a whole number, or none")

	for _, args := range [][]string{
		{"pause", "none", "--reason", "x"}, {"configure", "test_queue", "--reason", "x"}, {"pause", "test_queue"},
		{"configure", "test_queue", "--rate-limit", "fast", "--reason", "x"},
	} {
		o := s.run(append([]string{"queue"}, args...)...)
		require.NotEqual(t, ExitOK, o.code, args)
		require.NotContains(t, o.err, "SQLSTATE", args)
	}
}

func TestDeadLettersAreShownRedrivenAndDropped(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	require.Contains(t, s.ok("dead", "list"), "No dead letters.")
	for n := range 3 {
		s.sql(`with dead as (insert into pawl.dead_letters (queue, msg_id, message, reason)
			values ('orchestration_task_requests', $1, '{"template": "test/none"}', 'unknown template test/none') returning 1) select 'x'`, n+1)
	}
	list := decode[[]deadLetter](s, "dead", "list", "--queue", "orchestration_task_requests")
	require.Len(t, list, 3)
	id := fmt.Sprint(list[2].DeadLetterID)
	shown := s.ok("dead", "show", id)
	require.Contains(t, shown, `"template": "test/none"`)
	require.Equal(t, ExitNotFound, s.run("dead", "show", "99").code)
	require.Equal(t, ExitUsage, s.run("dead", "show", "x").code)

	require.Contains(t, s.run("dead", "redrive", "--reason", "x").err, "say which dead letters")
	s.ok("dead", "redrive", id, "--reason", "a test")
	require.Equal(t, "redriven", decode[deadLetter](s, "dead", "show", id).Status)
	require.Equal(t, "1", s.sql("select count(*)::text from pgmq.q_orchestration_task_requests"))
	again := s.run("dead", "redrive", id, "--reason", "a test")
	require.Equal(t, ExitRefused, again.code)
	require.Contains(t, again.err, "dead letter "+id+" is redriven already")
	require.Equal(t, "1", s.sql("select count(*)::text from pgmq.q_orchestration_task_requests"))
	unknown := s.run("dead", "drop", fmt.Sprint(list[0].DeadLetterID), "99", "--reason", "a test")
	require.Equal(t, ExitNotFound, unknown.code)
	require.Contains(t, unknown.err, "there is no dead letter 99")
	require.Contains(t, unknown.err, "Nothing was changed")
	require.Equal(t, "open", decode[deadLetter](s, "dead", "show", fmt.Sprint(list[0].DeadLetterID)).Status, "all of them or none")
	s.ok("dead", "drop", "--reason-like", "unknown template%", "--limit", "1", "--reason", "a test")
	require.Len(t, decode[[]deadLetter](s, "dead", "list", "--status", "dropped"), 1)
	s.ok("dead", "drop", "--all", "--reason", "a test")
	require.Empty(t, decode[[]deadLetter](s, "dead", "list"))
	require.Len(t, decode[[]deadLetter](s, "dead", "list", "--status", "all"), 3)
	require.Equal(t, ExitUsage, s.run("dead", "list", "--status", "gone").code)
	require.True(t, strings.HasPrefix(s.ok("dead", "list", "--status", "all"), "ID"))
}
