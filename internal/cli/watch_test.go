package cli

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// watch runs pawl watch until it ends; the functions wait for a text that it prints, and for its exit code.
func (s *shell) watch(ids ...string) (shows func(string), ends func() int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), deadline)
	s.t.Cleanup(cancel)
	var out, errs safeBuffer
	code := make(chan int, 1)
	go func() {
		code <- Run(ctx, append([]string{"watch", "--interval", "50ms", "--database-url", s.url}, ids...),
			Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	}()
	shows = func(text string) {
		s.t.Helper()
		require.Eventually(s.t, func() bool { return strings.Contains(out.String(), text) }, deadline, 20*time.Millisecond, text)
	}
	return shows, func() int { return <-code }
}

// swept deletes a task as retention does.
func (s *shell) swept(id string) {
	s.t.Helper()
	s.sql(`with steps as (delete from pawl.steps where task_id = $1) delete from pawl.tasks where task_id = $1 returning ''`, id)
}

func TestAWatchedTaskThatIsSweptBetweenTwoLooksIsNotFound(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.apply(diamond)
	id := s.submitDiamond(`{}`)
	shows, ends := s.watch(id)
	shows(id)
	s.swept(id)
	require.Equal(t, ExitNotFound, ends())
}

func TestAWatchedTaskThatWasSeenToEndMayBeSwept(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.apply(diamond)
	first, second := s.submitDiamond(`{}`), s.submitDiamond(`{}`)
	shows, ends := s.watch(first, second)
	s.ok("task", "cancel", first, "--actor", "ann", "--reason", "r")
	shows("cancelled")
	s.swept(first)
	s.ok("task", "cancel", second, "--actor", "ann", "--reason", "r")
	require.Equal(t, ExitTaskFailed, ends())
}

func TestAWatchEndsWhenNobodyReadsIt(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.apply(diamond)
	id := s.submitDiamond(`{}`)
	for _, more := range [][]string{{}, {"--json"}} {
		reader, writer, err := os.Pipe()
		require.NoError(t, err)
		t.Cleanup(func() { _ = writer.Close() })
		code := make(chan int, 1)
		go func() {
			code <- Run(t.Context(), append([]string{"watch", "--interval", "50ms", "--database-url", s.url}, more...), Streams{Out: writer, Err: io.Discard})
		}()
		line, err := bufio.NewReader(reader).ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, id)
		require.NoError(t, reader.Close()) // and nothing changes any more
		select {
		case ended := <-code:
			require.Equal(t, ExitOK, ended)
		case <-time.After(deadline):
			require.Fail(t, "it goes on")
		}
	}
}

func TestTheViewFitsTheTerminal(t *testing.T) {
	t.Parallel()
	tasks := make([]taskRow, 12)
	for i := range tasks {
		tasks[i].TaskID = "0190aaaa-0000-7000-8000-000000000001"
	}
	w := &watcher{}
	lines := w.frame(tasks, nil, 80, 5)
	require.Len(t, lines, 5)
	require.Equal(t, "… and 10 more", lines[2])
	require.Contains(t, lines[4], "queues")
	require.Len(t, w.frame(tasks, nil, 80, 14), 14)
	require.Len(t, w.frame(tasks[:1], nil, 80, 2), 3, "the screen cuts what is left")
}
