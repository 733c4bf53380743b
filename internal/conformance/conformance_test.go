package conformance_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/conformance"
)

func TestTheGoWorkerPasses(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	bin := filepath.Join(t.TempDir(), "goworker")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./goworker").CombinedOutput()
	require.NoError(t, err, "%s", out)
	report, err := conformance.Run(t.Context(), conformance.Config{Name: "Go", Command: bin})
	require.NoError(t, err)
	var printed bytes.Buffer
	report.Print(&printed)
	require.Zero(t, report.Failed(), "%s", printed.String())
	require.Greater(t, report.Passed(), 20)
}

func TestAWorkerThatTakesNoStepsIsNotTried(t *testing.T) {
	t.Parallel()
	for name, worker := range map[string]struct {
		command, why, log string
		patience          time.Duration
	}{
		"hangs":          {"echo no work; exec sleep 1000", "it runs, and the first step for its handler echo is", "no work", time.Second},
		"ends at once":   {"echo no database; exit 3", "it has ended 5 times, the last time with exit code 3", "no database", time.Minute},
		"does not exist": {"no-such-worker --queue x", "it has ended 5 times, the last time with exit code 127", "not found", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, err := conformance.Run(t.Context(), conformance.Config{Command: worker.command, Level: conformance.LevelPGMQ, Patience: worker.patience})
			require.NoError(t, err)
			require.Zero(t, report.Passed())
			require.Equal(t, "FAIL", string(report.Results[0].Outcome))
			require.Contains(t, report.Silent, worker.why)
			require.Contains(t, report.Log, worker.log)
			var printed bytes.Buffer
			report.Print(&printed)
			require.Contains(t, printed.String(), worker.why)
			require.NotContains(t, printed.String(), report.Results[0].Check, "one reason is enough")
			require.Contains(t, report.Summary(), "0 passed")
		})
	}
}

func TestACheckThatDoesNotExistIsNamed(t *testing.T) {
	t.Parallel()
	_, err := conformance.Run(t.Context(), conformance.Config{Command: "true", Only: []string{"retry-after is passed onn"}})
	require.ErrorContains(t, err, `did you mean "retry-after is passed on"?`)
}

func TestTheTableNumbersWhatLevelsCannotPass(t *testing.T) {
	t.Parallel()
	var table bytes.Buffer
	conformance.Markdown(&table, []conformance.Report{
		{Name: "a", Level: 2, Results: []conformance.Result{{Check: "one", Outcome: conformance.Passes}, {Check: "two", Outcome: conformance.Fails}, {Check: "three", Outcome: conformance.Passes}}},
		{Name: "b", Level: 1, Results: []conformance.Result{{Check: "one", Outcome: conformance.Cannot, Detail: "no."}, {Check: "two", Outcome: conformance.Cannot, Detail: "never."}, {Check: "three", Outcome: conformance.Cannot, Detail: "no."}}},
	})
	require.Equal(t, strings.TrimLeft(`
| check | a (level 2) | b (level 1) |
| --- | --- | --- |
| one | ✓ | – (1) |
| two | ✗ | – (2) |
| three | ✓ | – (1) |

1. no.
2. never.
`, "\n"), table.String())
}

func TestTheDocumentHasARowForEachCheck(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/conformance.md")
	require.NoError(t, err)
	for _, name := range conformance.Names() {
		require.Contains(t, string(text), "\n| "+name+" |", "make conformance ARGS=--markdown prints the table")
	}
}
