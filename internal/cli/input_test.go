package cli

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/program"
)

func TestReadingEndsWithTheCommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"submit", "a/b", "--input-file", "-"}, {"enqueue", "h", "--input-file", "-"},
		{"template", "apply", "-"}, {"config", "diff", "-"},
	} {
		silent, open := io.Pipe()
		defer open.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		ended := make(chan int, 1)
		var out, errs bytes.Buffer
		go func() { ended <- Run(ctx, args, Streams{In: silent, Out: &out, Err: &errs}) }()
		select {
		case code := <-ended:
			require.Equal(t, ExitFailed, code, "%v: %s", args, errs.String())
		case <-time.After(deadline):
			require.Fail(t, "it reads on", "%v", args)
		}
	}
}

// A process that goes on after the first signal; the next test starts it.
func TestDeafProcess(t *testing.T) {
	if os.Getenv("PAWL_TEST_DEAF") == "" {
		t.Skip("started by TestASecondSignalEndsPawl")
	}
	ctx, stop := program.UntilSignal()
	defer stop()
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("interrupted")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test has ended
}

func TestASecondSignalEndsPawl(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	p := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestDeafProcess$", "-test.count=1")
	p.Env = append(os.Environ(), "PAWL_TEST_DEAF=1")
	stdin, err := p.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	stdout, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	said := bufio.NewScanner(stdout)
	for _, word := range []string{"ready", "interrupted"} {
		for said.Scan() && said.Text() != word {
		}
		require.Equal(t, word, said.Text())
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	require.Eventually(t, func() bool { // the signals are given back a moment after the context ends
		return p.Process.Signal(syscall.SIGTERM) != nil
	}, deadline, 20*time.Millisecond)
	require.ErrorContains(t, <-ended, "terminated")
}
