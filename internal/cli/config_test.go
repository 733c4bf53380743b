package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestConfigIsAppliedComparedAndShown(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.apply(diamond)
	file := filepath.Join(t.TempDir(), "pawl.toml")
	require.NoError(t, os.WriteFile(file, []byte(`
[queues.test_queue]
rate_limit = "100/sec"
burst = 20

[templates."test/diamond"]
retention = "90d"
stuck_after = { blocked_by_failures = "4h", waiting_for_retry = "1d12h" }

[engine]
staged = true

[retention]
audit = "91d"
`), 0o600))
	would := s.ok("config", "diff", file)
	require.Contains(t, would, "queues.test_queue.rate_limit: - → 100/sec")
	require.Contains(t, would, "engine.staged: false → true")
	require.NotContains(t, s.ok("config", "show"), "100/sec")

	require.Equal(t, ExitUsage, s.run("config", "apply", file).code)
	changes := decode[[]settingChange](s, "config", "apply", file, "--reason", "a test")
	require.Len(t, changes, 7)
	require.Contains(t, s.ok("config", "diff", file), "already")
	audited := s.sql("select count(*)::text from pawl.operations")
	require.Contains(t, s.ok("config", "apply", file), "already", "nothing changes, so that there is no reason to give")
	require.Equal(t, audited, s.sql("select count(*)::text from pawl.operations"))
	require.NotContains(t, s.ok("config", "diff", file), "applied")
	shown := s.ok("config", "show")
	require.Contains(t, shown, `rate_limit = "100/sec"`)
	require.Contains(t, shown, `waiting_for_retry = "1d12h"`)

	// What is shown can be applied, and changes nothing.
	o := s.feed(shown, "config", "diff", "-")
	require.Equal(t, ExitOK, o.code, o.err)
	require.Contains(t, o.out, "already")

	bad := s.feed("[queues.test_queue]\nrate_limit = \"5/sec\"\n[templates.\"test/none\"]\nretention = \"1d\"", "config", "apply", "-", "--reason", "x")
	require.Equal(t, ExitNotFound, bad.code, bad.err)
	require.Contains(t, s.ok("config", "show"), "100/sec")
	typo := s.feed("[queues.test_queue]\nrate_limt = \"5/sec\"", "config", "apply", "-", "--reason", "x")
	require.Equal(t, ExitUsage, typo.code)
	require.Contains(t, typo.err, "rate_limt")
}
