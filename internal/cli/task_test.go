package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTasksAreListedShownAndTold(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.engine()
	require.Contains(t, s.ok("task", "list"), "No such tasks.")
	good := s.submitDiamond(`{"n": 1}`)
	s.ok("task", "wait", good)
	bad := decode[decision](s, "submit", "test/diamond", "--input", `{"fail": true}`, "--key", "K-1", "--tag", "a=b").TaskID.String()
	require.Equal(t, ExitTaskFailed, s.run("task", "wait", bad).code)

	list := decode[[]taskRow](s, "task", "list")
	require.Len(t, list, 2)
	for filter, want := range map[string]string{
		"--state=error": bad, "--state=complete": good, "--key=K-1": bad, "--tag=a=b": bad,
	} {
		found := decode[[]taskRow](s, "task", "list", filter)
		require.Len(t, found, 1, filter)
		require.Equal(t, want, found[0].TaskID, filter)
	}
	require.Len(t, decode[[]taskRow](s, "task", "list", "--state", "final", "--template", "test/diamond@1", "--since", "1h"), 2)
	require.Empty(t, decode[[]taskRow](s, "task", "list", "--state", "open"))
	require.Len(t, decode[[]taskRow](s, "task", "list", "--limit", "2"), 2)
	clipped := s.run("task", "list", "--limit", "1", "--json")
	require.Equal(t, "1 shown, there are more: --limit 2 for twice as many\n", clipped.err)
	require.Equal(t, 1, strings.Count(clipped.out, `"task_id"`))
	require.Equal(t, ExitUsage, s.run("task", "list", "--state", "done").code)
	require.Regexp(t, `TASK +TEMPLATE +STATE +STEPS`, s.ok("task", "list"))

	shown := decode[taskDetail](s, "task", "show", bad)
	require.Equal(t, "error", shown.State)
	require.Equal(t, "K-1", *shown.Key)
	require.Len(t, shown.StepRows, 4)
	require.Equal(t, "first", shown.StepRows[0].Step)
	require.Equal(t, "cancelled", shown.StepRows[3].State)
	require.Regexp(t, `right +error +1 +1 +test_queue`, s.ok("task", "show", bad))

	history := s.ok("task", "history", good)
	require.Regexp(t, `\(task\) +- → steps_in_process`, history)
	require.Regexp(t, `last +in_progress → complete`, history)
	require.Contains(t, decode[[]historyRow](s, "task", "history", good)[0].To, "steps_in_process")
}

func TestTaskIsFoundByTheBeginningOfItsID(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.engine()
	s.ok("submit", "test/diamond", "--request-id", "0190aaaa-0000-7000-8000-000000000001")
	s.ok("submit", "test/diamond", "--request-id", "0190aaaa-0000-7000-9000-000000000001")
	require.Contains(t, s.ok("task", "show", "0190AAAA-0000-7000-8"), "0190aaaa-0000-7000-8000-000000000001")
	for typed, want := range map[string]struct {
		code int
		says string
	}{
		"0190aaaa":                             {ExitUsage, "Give more"},
		"0191":                                 {ExitNotFound, "no task"},
		"0190aaaa-0000-7000-8000-000000000009": {ExitNotFound, "pawl task list"},
		"xyz":                                  {ExitUsage, "first 4 characters"},
		"0190-aaaa":                            {ExitUsage, "beginning of a task id"},
	} {
		o := s.run("task", "show", typed)
		require.Equal(t, want.code, o.code, typed)
		require.Contains(t, o.err, want.says, typed)
	}
}

// The message of an error is anybody's: what moves a terminal's cursor or makes a second line is no part of a table.
func TestHistorySaysInOneLineWhyAnAttemptFailed(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.engine()
	failed := s.submitDiamond(`{"fail": true}`)
	require.Equal(t, ExitTaskFailed, s.run("task", "wait", failed).code)
	require.Contains(t, s.ok("task", "history", failed), ": on_demand: refused [2J  on demand\n")
}

func TestOperatorCommandsMoveTasksAndKeepWhoAndWhy(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.engine()
	because := []string{"--reason", "a test", "--actor", "tester"}
	with := func(args ...string) []string { return append(args, because...) }

	failed := s.submitDiamond(`{"fail": true}`)
	require.Equal(t, ExitTaskFailed, s.run("task", "wait", failed).code)
	none := s.run("task", "retry", failed)
	require.Equal(t, ExitUsage, none.code)
	require.Contains(t, none.err, "--reason")

	require.Contains(t, s.ok(with("task", "retry", failed)...), "runs again")
	require.Equal(t, ExitTaskFailed, s.run("task", "wait", failed).code)
	require.Contains(t, s.ok(with("step", "retry", failed, "right")...), "step right of task "+failed+" runs again")
	require.Equal(t, ExitTaskFailed, s.run("task", "wait", failed).code)
	require.Contains(t, s.ok("task", "history", failed), "tester: a test")
	require.Equal(t, "tester", s.sql("select actor from pawl.operations where command like '%retry%' limit 1"))

	s.ok(with("step", "complete", failed, "right", "--result", `{"by": "hand"}`)...)
	s.ok("task", "wait", failed)
	require.Equal(t, ExitRefused, s.run(with("task", "cancel", failed)...).code)
	require.Equal(t, ExitNotFound, s.run(with("step", "retry", failed, "none")...).code)
	require.Equal(t, ExitUsage, s.run(with("step", "retry", failed, "right[x]")...).code)
	require.Equal(t, ExitUsage, s.run(with("step", "complete", failed, "right")...).code)

	later := decode[decision](s, "submit", "test/diamond", "--run-at", "1h").TaskID.String()
	require.Contains(t, s.ok(with("task", "cancel", later)...), "cancelled")
	require.Equal(t, "cancelled", decode[taskDetail](s, "task", "show", later).State)
	s.ok(with("task", "resolve", later, "--result", `{"n": 0}`)...)
	require.Equal(t, "resolved_manually", decode[taskDetail](s, "task", "show", later).State)

	other := s.submitDiamond(`{"fail": true}`)
	require.Equal(t, ExitTaskFailed, s.run("task", "wait", other).code)
	s.ok(with("step", "resolve", other, "right[0]")...)
	s.ok("task", "wait", other)
}

func TestExplainSaysWhyATaskWaits(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.apply(diamond)
	s.orchestrate()
	id := s.submitDiamond("{}")
	require.Contains(t, s.ok("task", "explain", id), "test_queue")
	require.NotEmpty(t, decode[map[string]any](s, "task", "explain", id))
	require.Contains(t, s.ok("stuck"), "Nothing is stuck.")
	s.sql("with old as (update pawl.tasks set state_since = state_since - interval '1 day' returning 1) select 'x'")
	s.feed("[templates.\"test/diamond\"]\nstuck_after = {steps_in_process = \"1h\"}", "config", "apply", "-", "--reason", "a test")
	require.Regexp(t, id+` +test/diamond@1 +steps_in_process`, s.ok("stuck"))
	require.Len(t, decode[[]any](s, "stuck"), 1)
}

func TestWatchFollowsNamedTasksToTheirEnd(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.engine()
	good, bad := s.submitDiamond(`{}`), s.submitDiamond(`{"fail": true}`)
	out := s.ok("watch", good, "--interval", "50ms")
	require.Regexp(t, good+`  test/diamond@1  complete  4/4`, out)
	require.Equal(t, ExitTaskFailed, s.run("watch", good, bad, "--interval", "50ms", "--json").code)
	require.Contains(t, s.ok("watch", "--once"), bad)
}
