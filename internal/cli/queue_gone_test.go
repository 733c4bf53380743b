package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDroppedQueueIsListedAndMadeAnew(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(*shell){
		"resume":   func(s *shell) { s.ok("queue", "resume", "test_queue", "--reason", "a test") },
		"template": func(s *shell) { s.apply(diamond) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			s.apply(diamond)
			s.sql("select pgmq.drop_queue('test_queue')::text")
			listed := s.ok("queue", "list", "--all")
			require.Regexp(t, `test_queue +- +- +0 +- +-\n`, listed)
			require.Contains(t, listed, "\nqueue test_queue lacks its table: pawl queue resume test_queue makes it whole\n")
			require.Regexp(t, `orchestration_step_results +0 +0 +0 +- +-\n`, listed)
			row := decode[[]queueRow](s, "queue", "list")[0]
			require.True(t, row.Missing)
			require.Contains(t, row.Problem, "lacks its table")
			found := s.run("doctor")
			require.Equal(t, ExitFailed, found.code)
			require.Contains(t, found.out, "H12 a queue that Pawl knows is whole")
			require.Contains(t, found.out, "pawl queue resume test_queue makes it whole")

			again(s)
			require.Regexp(t, `^QUEUE.*\ntest_queue +0 +0 +0 +- +-\n$`, s.ok("queue", "list"))
			s.ok("doctor")
		})
	}
}
