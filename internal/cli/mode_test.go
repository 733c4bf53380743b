package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const modeSettings = `
[queues.test_queue]
rate_limit = "100/sec"

[templates."test/diamond"]
stuck_after = { blocked_by_failures = "4h" }

[engine]
staged = true
`

// Behind a transaction pooler nothing is prepared, and pgx encodes arguments without the server's word on their types.
func TestPawlNeedsNoPreparedStatements(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"exec", "simple_protocol", "cache_describe"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			s.engine()
			s.url += "&default_query_exec_mode=" + mode
			require.Contains(t, s.ok("submit", "test/diamond", "--input", `{"n": 7}`, "--tag", "a=it's", "--wait"), `"n": 7`)
			id := s.submitDiamond(`{"n": 8}`)
			s.ok("task", "wait", id)
			s.ok("watch", id)
			require.Len(t, decode[[]taskRow](s, "task", "list", "--state", "complete,error", "--tag", "a=it's", "--since", "1h"), 1)
			s.ok("task", "show", id)
			s.ok("task", "history", id)
			s.ok("task", "explain", id)
			diff := s.feed(modeSettings, "config", "diff", "-")
			require.Equal(t, ExitOK, diff.code, diff.err)
			require.Contains(t, diff.out, "engine.staged: false → true")
			applied := s.feed(modeSettings, "config", "apply", "-", "--reason", "a test")
			require.Equal(t, ExitOK, applied.code, applied.err)
			require.Contains(t, s.feed(modeSettings, "config", "diff", "-").out, "already")
			s.ok("queue", "list")
			s.ok("dead", "list")
			s.ok("stuck")
			s.ok("doctor")
		})
	}
}
