// Package plainsql tests the scripts of this folder.
package plainsql

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/orchestrator"
	"github.com/pawl-dev/pawl/internal/pgtest"
)

const patience = 2 * time.Minute

// scripts runs the scripts against a database with an orchestrator at work.
type scripts struct {
	*testing.T
	ctx  context.Context
	pool *pgxpool.Pool
}

func newScripts(t *testing.T) *scripts {
	for _, name := range []string{"bash", "psql"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("this machine has no %s", name)
		}
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	s := &scripts{T: t, ctx: ctx, pool: pgtest.DB(t)}
	o, err := orchestrator.Start(ctx, orchestrator.Config{
		DatabaseURL: s.pool.Config().ConnString(), Connections: 4, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.Stop(context.WithoutCancel(ctx))) })
	return s
}

func (s *scripts) command(name string, arguments ...string) *exec.Cmd {
	c := exec.CommandContext(s.ctx, name, arguments...)
	c.Env = append(os.Environ(), "PAWL_DATABASE_URL="+s.pool.Config().ConnString(), "STEPS=1")
	return c
}

// run returns what a script printed.
func (s *scripts) run(name string, arguments ...string) string {
	s.Helper()
	out, err := s.command(name, arguments...).CombinedOutput()
	require.NoError(s, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// task sends a request and waits until its message is in the worker's queue.
func (s *scripts) task(request string) string {
	s.Helper()
	task := s.run("./producer.sh", request)
	require.Eventually(s, func() bool {
		var there bool
		err := s.pool.QueryRow(s.ctx, `select exists (select from pawl.steps where task_id = $1 and state = 'enqueued')`, task).Scan(&there)
		return err == nil && there
	}, patience, 10*time.Millisecond)
	return task
}

func TestAProducerAndAWorkerNeedOnlyPsql(t *testing.T) {
	s := newScripts(t)
	task := s.task(`{"handler": "greet", "queue": "greet_queue", "input": {"name": "Ada | O'Hara"}}`)
	s.run("./worker.sh", "greet_queue", "./greet.sh")
	require.JSONEq(t, `{"greeting": "Hello, Ada | O'Hara!"}`, s.run("./wait.sh", task))
	var left int
	require.NoError(t, s.pool.QueryRow(s.ctx, `select count(*) from pgmq.q_greet_queue`).Scan(&left))
	require.Zero(t, left)
}

func TestFailuresOfACommandAreFailuresOfItsStep(t *testing.T) {
	s := newScripts(t)
	task := s.task(`{"handler": "greet", "queue": "greet_queue", "input": {}}`)
	s.run("./worker.sh", "greet_queue", "./greet.sh")
	out, err := s.command("./wait.sh", task).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "the input has no name")
	require.Contains(t, string(out), "invalid_input")

	task = s.task(`{"handler": "greet", "queue": "greet_queue", "input": {}}`)
	s.run("./worker.sh", "greet_queue", "echo", "no JSON")
	out, err = s.command("./wait.sh", task).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "invalid_result")

	task = s.task(`{"handler": "greet", "queue": "greet_queue", "input": {}}`)
	s.run("./worker.sh", "greet_queue", "false")
	require.Eventually(t, func() bool {
		var kind string
		err := s.pool.QueryRow(s.ctx, `select error->>'type' from pawl.steps where task_id = $1 and failures = 1`, task).Scan(&kind)
		return err == nil && kind == "exit_1"
	}, patience, 10*time.Millisecond)
}

func TestComplaintsThatAreNoTextOrCutEndNoWorker(t *testing.T) {
	s := newScripts(t)
	for _, complaint := range []string{`printf '%1999sé' x`, `printf '\377\0'`} {
		task := s.task(`{"handler": "greet", "queue": "greet_queue", "input": {}}`)
		s.run("./worker.sh", "greet_queue", "bash", "-c", complaint+" >&2; exit 65")
		out, err := s.command("./wait.sh", task).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(out), "invalid_input")
	}
}

func TestLargeInputsAndResultsGoThrough(t *testing.T) {
	s := newScripts(t)
	small := s.task(`{"handler": "size", "queue": "greet_queue", "input": {}}`)
	s.run("./worker.sh", "greet_queue", "cat")
	s.run("./wait.sh", small)
	var task string
	require.NoError(t, s.pool.QueryRow(s.ctx, `select request_id from gen_random_uuid() request_id, pgmq.send('orchestration_task_requests',
		jsonb_build_object('request_id', request_id, 'handler', 'size', 'queue', 'greet_queue', 'input', $1::text))`, incompressible(300_000)).Scan(&task))
	s.run("./worker.sh", "greet_queue", "cat") // the message, input and all, is the result
	require.Greater(t, len(s.run("./wait.sh", task)), 300_000)
}

// incompressible is text that Postgres cannot store in much less.
func incompressible(n int) string {
	text, state := make([]byte, n), uint32(1)
	for i := range text {
		state = state*1664525 + 1013904223
		text[i] = 'A' + byte(state>>24)%58
		if text[i] == '\\' {
			text[i] = '0'
		}
	}
	return string(text)
}
