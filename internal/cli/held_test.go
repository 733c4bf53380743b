package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Who waits for a task that waits for a person is told so, once, and of what it failed.
func TestWaitingTellsThatATaskWaitsForAPerson(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.engine()
	s.apply(strings.NewReplacer("diamond", "careful", "on_failure: finish", "on_failure: hold").Replace(diamond))
	id := decode[decision](s, "submit", "test/careful", "--input", `{"fail": "as a text, which is not what the handler's type says"}`).TaskID.String()

	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	var out, errs safeBuffer
	code := make(chan int, 1)
	go func() {
		code <- Run(ctx, []string{"task", "wait", id, "--database-url", s.url}, Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	}()
	require.Eventually(t, func() bool { return strings.Contains(errs.String(), "\n") }, deadline, 10*time.Millisecond, "%s", &out)
	require.Equal(t, "task "+id+" is blocked_by_failures and waits for a person: pawl task explain "+id+"\n", errs.String())

	failed := decode[taskDetail](s, "task", "show", id).StepRows[0]
	require.Greater(t, len(errorMessage(failed.Error)), 60)
	require.Contains(t, s.ok("task", "show", id), errorMessage(failed.Error), "the whole error")

	s.ok("task", "resolve", id, "--reason", "done elsewhere")
	require.Equal(t, ExitOK, <-code)
	require.Equal(t, 1, strings.Count(errs.String(), "\n"))
}
