package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/demo/languages"
)

// demoCommand runs the built pawl with a folder of its own for temporary files.
func demoCommand(t *testing.T, args ...string) (cmd *exec.Cmd, folder string, out *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*deadline)
	t.Cleanup(cancel)
	folder, err := os.MkdirTemp("/tmp", "pawl-e2e-demo-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(folder, 0o711)) // Postgres may run as another user
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	cmd = exec.CommandContext(ctx, binary(t, "pawl"), append([]string{"demo"}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+folder)
	out = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd, folder, out
}

func requireNothingLeft(t *testing.T, folder string) {
	t.Helper()
	require.Eventually(t, func() bool {
		left, err := filepath.Glob(filepath.Join(folder, "*"))
		return err == nil && len(left) == 0
	}, deadline, 50*time.Millisecond, "files are left in %s", folder)
}

// requireProof of the orders of examples/orders, whoever worked.
func requireProof(t *testing.T, text string) {
	t.Helper()
	require.Contains(t, text, "✓ every order finished once: 300 orders, 300 tasks, 300 complete")
	require.Contains(t, text, "✓ every order charged once: 300 charges")
	require.Contains(t, text, "✓ 30 repeated requests, 30 absorbed")
	require.Contains(t, text, "✓ 4 processes killed")
	require.NotContains(t, text, "✗")
}

func TestDemoInGoProvesItselfAndLeavesNothing(t *testing.T) {
	t.Parallel()
	cmd, folder, out := demoCommand(t, "--languages", "go")
	require.NoError(t, cmd.Run(), out)
	requireProof(t, out.String())
	require.Contains(t, out.String(), "✓ 1800 steps completed: 1800 in Go\n")
	require.NotContains(t, out.String(), "sits this one out")
	requireNothingLeft(t, folder)
}

// With what this machine has: a language that is missing is told, and Go stands in.
func TestDemoInThreeLanguagesProvesItself(t *testing.T) {
	t.Parallel()
	cmd, folder, out := demoCommand(t)
	require.NoError(t, cmd.Run(), out)
	text := out.String()
	requireProof(t, text)
	for name, find := range map[string]func(string) (languages.Command, error){"Python": languages.Python, "TypeScript": languages.TypeScript} {
		if _, err := find("demo"); err != nil {
			t.Logf("without %s: %v", name, err)
			require.Contains(t, text, name+" sits this one out: "+err.Error())
			continue
		}
		require.Contains(t, text, ", 300 in "+name)
	}
	requireNothingLeft(t, folder)
}

func TestDemoOutsideOfACheckoutRunsInGo(t *testing.T) {
	t.Parallel()
	cmd, folder, out := demoCommand(t, "--orders", "20")
	cmd.Dir = folder
	require.NoError(t, cmd.Run(), out)
	require.Contains(t, out.String(), "Python sits this one out: its worker lies in the repository")
	require.Contains(t, out.String(), "✓ 120 steps completed: 120 in Go\n")
	require.NotContains(t, out.String(), "✗")

	cmd, _, out = demoCommand(t, "--languages", "cobol")
	require.Error(t, cmd.Run())
	require.Contains(t, out.String(), `"cobol" is none of go, python, typescript`)
}

func TestDemoRunsTheUsersOwnOrdersAndCountsWhatIsRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mine.csv")
	rows := "order_id,placed_at,customer_id,country,items,shipping,payment\n"
	for _, id := range []string{"A", "B", "C", "D", "E", "F", "G", "H"} {
		rows += id + ",2026-01-01T00:00:00Z,C-1,DE,TEA-SEN-100:1,standard,card\n"
	}
	rows += "X,2026-01-01T00:00:00Z,C-1,DE,NO-SUCH-1:1,standard,card\n"
	require.NoError(t, os.WriteFile(file, []byte(rows), 0o600))
	cmd, folder, out := demoCommand(t, "--languages", "go", "--input", file, "--rate", "20")
	require.NoError(t, cmd.Run(), out)
	require.Contains(t, out.String(), "9 orders, 9 tasks, 8 complete, 1 refused by validate")
	requireNothingLeft(t, folder)

	cmd, _, out = demoCommand(t, "--input", "/none/orders.csv")
	require.Error(t, cmd.Run())
	require.Contains(t, out.String(), "no such file")
}

func TestInterruptedDemoLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		cmd, folder, _ := demoCommand(t, "--rate", "5", "--keep=false")
		progress := &lastLines{}
		cmd.Stdout, cmd.Stderr = progress, progress
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { return bytes.Contains([]byte(progress.String()), []byte("sent 1")) }, deadline, 20*time.Millisecond, progress)
		require.NoError(t, cmd.Process.Signal(signal))
		require.Error(t, cmd.Wait())
		if signal == syscall.SIGINT {
			requireNothingLeft(t, folder)
			continue
		}
		// The killed demo cannot remove its logs, but its processes and its server end, and the server's folder goes.
		require.Eventually(t, func() bool {
			servers, err := filepath.Glob(filepath.Join(folder, "pawl-postgres-*"))
			return err == nil && len(servers) == 0
		}, deadline, 50*time.Millisecond)
	}
}
