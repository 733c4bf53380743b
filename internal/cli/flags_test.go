package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlagsThatWouldBeIgnoredAreRefused(t *testing.T) {
	t.Parallel()
	s := &shell{t: t}
	for _, flag := range [][]string{{"--name", "bash"}, {"--level", "1"}} {
		o := s.run(append([]string{"conformance", "--worker", "bash:1=exit"}, flag...)...)
		require.Equal(t, ExitUsage, o.code, o.err)
		require.Contains(t, o.err, "NAME:LEVEL=COMMAND")
	}
	require.Equal(t, ExitUsage, s.run("watch", "0190aaaa", "--limit", "3").code)
}
