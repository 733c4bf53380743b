package cli

import (
	"context"
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
