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

func TestAWorkerThatDoesNothingFails(t *testing.T) {
	t.Parallel()
	report, err := conformance.Run(t.Context(), conformance.Config{Command: "echo no work; exec sleep 1000", Level: conformance.LevelPGMQ, Patience: time.Second})
	require.NoError(t, err)
	require.Zero(t, report.Passed())
	require.Equal(t, "FAIL", string(report.Results[0].Outcome))
	require.Contains(t, report.Log, "no work")
	require.Contains(t, report.Summary(), "0 passed")
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
