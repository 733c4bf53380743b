package cli

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/messaging"
)

func TestSubmitWaitsAndPrintsTheResult(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.engine()

	out := s.ok("submit", "test/diamond", "--input", `{"n": 7}`, "--wait")
	require.Regexp(t, `^task [0-9a-f-]{36} complete in `, out)
	require.Contains(t, out, `"n": 7`)

	task := decode[taskDetail](s, "submit", "test/diamond@1", "--input", `{"n": 8}`, "--tag", "month=3", "--requester", "tests",
		"--correlation-id", "c-1", "--wait")
	require.Equal(t, "complete", task.State)
	require.Equal(t, "completed", task.Status)
	require.JSONEq(t, `{"step": "last", "n": 8}`, string(task.Result))

	failed := s.run("submit", "test/diamond", "--input", `{"fail": true}`, "--wait")
	require.Equal(t, ExitTaskFailed, failed.code)
	require.Contains(t, failed.err, "on_demand")

	read := s.feed(`{"n": 9}`, "submit", "test/diamond", "--input-file", "-", "--wait")
	require.Equal(t, ExitOK, read.code, read.err)
	require.Contains(t, read.out, `"n": 9`)
}

func TestSubmitSaysWhatBecameOfDuplicates(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.engine()
	const id = "0190aaaa-0000-7000-8000-000000000001"

	first := decode[decision](s, "submit", "test/diamond", "--key", "K", "--input", "{}")
	require.Equal(t, messaging.Created, first.Outcome)
	again := decode[decision](s, "submit", "test/diamond", "--key", "K", "--input", "{}")
	require.Equal(t, messaging.Attached, again.Outcome)
	require.Equal(t, first.TaskID, again.TaskID)
	s.ok("task", "wait", first.TaskID.String())
	refused := s.run("submit", "test/diamond", "--key", "K", "--on-duplicate", "reject")
	require.Equal(t, ExitRefused, refused.code)
	require.Contains(t, refused.err, "Task with ID 'K' already completed successfully")
	refused = s.run("submit", "test/diamond", "--key", "K", "--on-duplicate", "reject", "--json")
	var body map[string]any
	require.NoError(t, json.Unmarshal([]byte(refused.err), &body))
	require.Equal(t, "TaskAlreadyCompleted", body["error"])
	require.Equal(t, first.TaskID.String(), body["existing_execution_id"])
	require.NotEmpty(t, body["completed_at"])
	require.Equal(t, map[string]any{"step": "last", "n": 0.0}, body["result"])
	other := s.run("submit", "test/diamond", "--key", "K", "--input", `{"n": 5}`)
	require.Equal(t, ExitRefused, other.code)
	require.Contains(t, other.err, "TaskInputMismatch")

	require.Contains(t, s.ok("submit", "test/diamond", "--request-id", id), "created task "+id)
	require.Contains(t, s.ok("submit", "test/diamond", "--request-id", id), "attached to task "+id)
}

func TestSubmitRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.apply(strings.Replace(diamond, "steps:", "input_schema: {type: object, required: [n]}\nsteps:", 1))
	s.orchestrate()
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"unknown template":  {[]string{"test/none"}, ExitNotFound, "pawl template list"},
		"unknown version":   {[]string{"test/diamond@9"}, ExitNotFound, "test/diamond@9"},
		"bad name":          {[]string{"diamond"}, ExitUsage, "namespace/name"},
		"bad JSON":          {[]string{"test/diamond", "--input", "{n: 1}"}, ExitUsage, "--input is not JSON"},
		"two inputs":        {[]string{"test/diamond", "--input", "{}", "--input-file", "x"}, ExitUsage, "not both"},
		"no such file":      {[]string{"test/diamond", "--input-file", "/none/x.json"}, ExitUsage, "no such file"},
		"bad policy":        {[]string{"test/diamond", "--on-duplicate", "ignore"}, ExitUsage, "attach or reject"},
		"bad id":            {[]string{"test/diamond", "--request-id", "7"}, ExitUsage, "not a UUID"},
		"bad time":          {[]string{"test/diamond", "--run-at", "tomorrow"}, ExitUsage, "2026-03-01T08:00:00Z"},
		"bad tag":           {[]string{"test/diamond", "--tag", "x"}, ExitUsage, "NAME=VALUE"},
		"zero character":    {[]string{"test/diamond", "--input", `{"n": "\u0000"}`}, ExitUsage, "cannot be stored"},
		"schema":            {[]string{"test/diamond", "--input", `{}`}, ExitRefused, `lacks "n"`},
		"schema, waited":    {[]string{"test/diamond", "--input", `{}`, "--wait"}, ExitRefused, "dead"},
		"time, unwaited":    {[]string{"test/diamond", "--timeout", "1m"}, ExitUsage, "add --wait"},
		"too few arguments": {nil, ExitUsage, "accepts 1 arg"},
	} {
		o := s.run(append([]string{"submit"}, test.args...)...)
		require.Equal(t, test.code, o.code, "%s: %s%s", name, o.out, o.err)
		require.Contains(t, o.err, test.says, name)
		require.Empty(t, o.out, name)
	}
}

func TestSubmitGivesUpWaitingWithItsOwnCode(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.apply(diamond)
	s.orchestrate()
	o := s.run("submit", "test/diamond", "--wait", "--timeout", "200ms")
	require.Equal(t, ExitTimeout, o.code, o.err)
	id := decode[decision](s, "submit", "test/diamond", "--run-at", "1h").TaskID.String()
	require.Equal(t, "pending", decode[taskDetail](s, "task", "show", id).State)
	require.Equal(t, ExitTimeout, s.run("task", "wait", id, "--timeout", "200ms").code)
}

// interruptedOnce runs pawl until the count is 1, interrupts it then, and returns what it says.
func (s *shell) interruptedOnce(count string, args ...string) string {
	s.t.Helper()
	ctx, interrupt := context.WithCancel(s.t.Context())
	defer interrupt()
	var errs safeBuffer
	code := make(chan int, 1)
	go func() {
		code <- Run(ctx, append(args, "--database-url", s.url), Streams{In: strings.NewReader(""), Out: io.Discard, Err: &errs})
	}()
	require.Eventually(s.t, func() bool { return s.sql(count) == "1" }, deadline, 20*time.Millisecond)
	interrupt()
	require.Equal(s.t, ExitFailed, <-code)
	return errs.String()
}

func TestAnInterruptedSubmitSaysWhatBecameOfItsRequest(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.apply(diamond)
	const id = "0190aaaa-0000-7000-8000-000000000001"
	said := s.interruptedOnce("select count(*)::text from pawl.tasks", "submit", "test/diamond", "--request-id", id, "--wait")
	require.Regexp(t, "task "+id+" goes on|request "+id+" may have been sent", said, "the second while its answer is under way")
	// One with a key waits for an orchestrator: nobody is there.
	const other = "0190aaaa-0000-7000-8000-000000000002"
	said = s.interruptedOnce("select count(*)::text from pgmq.q_orchestration_task_requests", "submit", "test/diamond", "--request-id", other, "--key", "K", "--wait")
	require.Regexp(t, "request "+other+" (stays|may have been) sent", said)
}

func TestEnqueueRunsOneStep(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.engine()
	task := decode[taskDetail](s, "enqueue", "test.echo", "--namespace", "test", "--input", `{"n": 3}`, "--wait")
	require.JSONEq(t, `{"step": "run", "n": 3}`, string(task.Result))
	require.Equal(t, ExitUsage, s.run("enqueue", "test.echo", "--queue", "No Such").code)
}
