// Package examples tests the workers of the folders below, each as a process of its own.
package examples

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/child"
	"github.com/pawl-dev/pawl/internal/orchestrator"
	"github.com/pawl-dev/pawl/internal/pgtest"
)

const (
	patience = 2 * time.Minute
	token    = "examples"
)

// kit is a database with an orchestrator at work.
type kit struct {
	*testing.T
	ctx  context.Context
	pool *pgxpool.Pool
	api  string // where the orchestrator answers
}

func newKit(t *testing.T, programs ...string) *kit {
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("this machine has no %s", name)
		}
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	k := &kit{T: t, ctx: ctx, pool: pgtest.DB(t)}
	o, err := orchestrator.Start(ctx, orchestrator.Config{DatabaseURL: k.pool.Config().ConnString(), Connections: 4,
		Listen: "127.0.0.1:0", WorkerToken: token, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, o.Stop(context.WithoutCancel(ctx))) })
	k.api = "http://" + o.Addr()
	return k
}

// start starts a worker that ends with the test. It tells when it has ended before.
func (k *kit) start(environment []string, name string, arguments ...string) (c *exec.Cmd, gone <-chan struct{}) {
	k.Helper()
	c = exec.CommandContext(k.ctx, name, arguments...)
	c.Env = append(append(os.Environ(), "PAWL_DATABASE_URL="+k.pool.Config().ConnString(), "PAWL_URL="+k.api, "PAWL_TOKEN="+token), environment...)
	child.InGroup(c)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	require.NoError(k, c.Start())
	waited := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(waited)
	}()
	k.Cleanup(func() {
		_ = child.SignalGroup(c, syscall.SIGKILL)
		<-waited
		if k.Failed() {
			k.Logf("the worker said:\n%s", &said)
		}
	})
	return c, waited
}

// submit makes a task of one step of the queue work_queue and returns its id. lease is in milliseconds, 0 for the usual one.
func (k *kit) submit(handler, input string, lease int) (task string) {
	k.Helper()
	if lease > 0 {
		_, err := k.pool.Exec(k.ctx, `select pawl.adhoc_template('default', $1, 'work_queue')`, handler)
		require.NoError(k, err)
		_, err = k.pool.Exec(k.ctx, `update pawl.template_steps set lease_ms = $1 where handler = $2`, lease, handler)
		require.NoError(k, err)
	}
	require.NoError(k, k.pool.QueryRow(k.ctx, `select request_id from gen_random_uuid() request_id, pgmq.send('orchestration_task_requests',
		jsonb_build_object('request_id', request_id, 'handler', $1::text, 'queue', 'work_queue', 'input', $2::jsonb))`, handler, input).Scan(&task))
	return task
}

// ended is what became of a step.
type ended struct {
	State, Result, Type string
	Deliveries          int
}

// await waits until an attempt of a task's step has ended, and says how.
func (k *kit) await(task string) (e ended) {
	k.Helper()
	require.Eventually(k, func() bool {
		err := k.pool.QueryRow(k.ctx, `select state, coalesce(result::text, ''), coalesce(error->>'type', ''), deliveries from pawl.steps
			where task_id = $1 and (failures > 0 or state = 'complete')`, task).Scan(&e.State, &e.Result, &e.Type, &e.Deliveries)
		if !errors.Is(err, pgx.ErrNoRows) {
			require.NoError(k, err)
		}
		return err == nil
	}, patience, 20*time.Millisecond, "step of task %s ends", task)
	return e
}

const httpHandlers = `
import datetime, sys, threading
sys.path.insert(0, "http")
import worker
worker.SLOTS = 1
def bad(step):
    return {"nan": float("nan"), "date": datetime.datetime(2026, 1, 2), "bytes": b"1", "itself": ITSELF}[step["input"]]
def surly(step):
    class Surly(Exception):
        def __str__(self):
            raise RuntimeError("no text")
    raise Surly
ITSELF = []
ITSELF.append(ITSELF)
handlers = {"bad": bad, "surly": surly, "echo": lambda step: step["input"], "wait": lambda step: step.unwanted.wait(float(step["input"]))}
worker.Worker("work_queue", handlers).run()
`

func TestAResultThatIsNoJSONCostsTheHTTPWorkerNoSlot(t *testing.T) {
	k := newKit(t, "python3")
	k.start(nil, "python3", "-c", httpHandlers)
	for _, input := range []string{`"nan"`, `"date"`, `"bytes"`, `"itself"`} {
		e := k.await(k.submit("bad", input, 0))
		require.Equal(t, []string{"error", "invalid_result"}, []string{e.State, e.Type}, input)
	}
	k.submit("surly", "1", 0) // its attempt ends with its lease
	require.Equal(t, "7", k.await(k.submit("echo", "7", 0)).Result)
}

func TestAnswersThatAreCutOffDoNotEndTheHTTPWorkersHeartbeats(t *testing.T) {
	k := newKit(t, "python3")
	var extends atomic.Int32
	way := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := k.forward(r)
		defer func() { _ = answer.Body.Close() }()
		n := int32(0)
		if strings.HasSuffix(r.URL.Path, "/extend") {
			n = extends.Add(1)
		}
		switch n {
		case 1: // fewer bytes than announced
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("[{"))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		case 2: // another one's page
			_, _ = w.Write([]byte("<html>"))
		default:
			w.WriteHeader(answer.StatusCode)
			_, _ = io.Copy(w, answer.Body)
		}
	}))
	t.Cleanup(way.Close)
	k.start([]string{"PAWL_URL=" + way.URL}, "python3", "-c", httpHandlers)
	k.submit("wait", "3600", 3000)
	require.Eventually(t, func() bool { return extends.Load() >= 4 }, patience, 20*time.Millisecond)
}

// forward hands a call on to the orchestrator.
func (k *kit) forward(r *http.Request) *http.Response {
	request, err := http.NewRequestWithContext(r.Context(), r.Method, k.api+r.URL.Path, r.Body)
	if err != nil {
		panic(err)
	}
	request.Header = r.Header
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return answer
}

func TestAnOldDeliverysEndLeavesTheNewerOneToTheHTTPWorker(t *testing.T) {
	k := newKit(t, "python3")
	out, err := exec.CommandContext(k.ctx, "python3", "-c", `
import sys
sys.path.insert(0, "http")
import worker
w = worker.Worker("work_queue", {"echo": lambda step: 1})
w.report = lambda report: None
claimed = {"msg_id": 1, "read_ct": 1, "lease_ms": 30000, "handler": "echo"}
old, new = worker.Step(claimed, 0), worker.Step({**claimed, "read_ct": 2}, 0)
w.held[1] = new
w.work(old)
assert w.held == {1: new}, w.held
w.work(new)
assert w.held == {}, w.held
`).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestAnOutageIsNotTheBashHandlersFailure(t *testing.T) {
	k := newKit(t, "bash", "psql")
	real, err := exec.LookPath("psql")
	require.NoError(t, err)
	folder := t.TempDir()
	handlers := filepath.Join(folder, "handlers.sh")
	require.NoError(t, os.WriteFile(handlers, []byte(`handle_greet() { string "Hello, $(field name)!"; }`), 0o600))
	// A psql that does not reach the database the first 25 times that a handler asks.
	require.NoError(t, os.WriteFile(filepath.Join(folder, "psql"), []byte(`#!/usr/bin/env bash
statement=$(cat)
tries=$(cat "$0.tries" 2>/dev/null || echo 0)
if [[ $statement == *'::jsonb->>'\''name'\'* || $statement == *to_jsonb* ]] && [ "$tries" -lt 25 ]; then
  echo $((tries + 1)) >"$0.tries"
  exit 2
fi
exec `+real+` "$@" <<<"$statement"
`), 0o700)) //nolint:gosec // it is run
	k.start([]string{"PATH=" + folder + ":" + os.Getenv("PATH")}, "bash", "bash/worker.sh", "work_queue", handlers)
	e := k.await(k.submit("greet", `{"name": "Ada"}`, 0))
	require.Equal(t, ended{State: "complete", Result: `"Hello, Ada!"`, Deliveries: 1}, e)
	tries, err := os.ReadFile(filepath.Join(folder, "psql.tries"))
	require.NoError(t, err)
	require.Equal(t, "25\n", string(tries))
}

func TestAResultThatPostgresCannotReadEndsItsStepAndNotTheBashWorker(t *testing.T) {
	k := newKit(t, "bash", "psql")
	handlers := filepath.Join(t.TempDir(), "handlers.sh")
	require.NoError(t, os.WriteFile(handlers, []byte(`
handle_deep() { printf '[%.0s' {1..20000}; printf ']%.0s' {1..20000}; }
handle_torn() { printf '{"a": '; }
handle_echo() { printf '%s' "$INPUT"; }
`), 0o600))
	k.start(nil, "bash", "bash/worker.sh", "work_queue", handlers)
	for _, handler := range []string{"deep", "torn"} {
		e := k.await(k.submit(handler, "1", 0))
		require.Equal(t, ended{State: "error", Type: "invalid_result", Deliveries: 1}, e, handler)
	}
	require.Equal(t, "7", k.await(k.submit("echo", "7", 0)).Result)
}

func TestTheBashWorkerStopsThoughItsReportIsNotTaken(t *testing.T) {
	k := newKit(t, "bash", "psql")
	real, err := exec.LookPath("psql")
	require.NoError(t, err)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "psql"), []byte(`#!/usr/bin/env bash
statement=$(cat)
if [[ $statement == *orchestration_step_results* ]]; then
  echo "ERROR:  57P03" >&2
  touch "$0.tried"
  exit 3
fi
exec `+real+` "$@" <<<"$statement"
`), 0o700)) //nolint:gosec // it is run
	worker, gone := k.start([]string{"PATH=" + folder + ":" + os.Getenv("PATH")}, "bash", "bash/worker.sh", "work_queue", "bash/greet.sh")
	k.submit("greet", `{"name": "Ada"}`, 0)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(folder, "psql.tried"))
		return err == nil
	}, patience, 20*time.Millisecond, "it reports")
	require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
	select {
	case <-gone:
		require.Zero(t, worker.ProcessState.ExitCode())
	case <-k.ctx.Done():
		require.Fail(t, "it goes on")
	}
}

func TestTheBashWorkerGreetsNobodyWithoutAName(t *testing.T) {
	k := newKit(t, "bash", "psql")
	k.start(nil, "bash", "bash/worker.sh", "work_queue", "bash/greet.sh")
	e := k.await(k.submit("greet", `{}`, 0))
	require.Equal(t, ended{State: "error", Type: "no_name", Deliveries: 1}, e)
}

func TestWhatIsNoJSONEndsItsStepAndNotTheRubyWorker(t *testing.T) {
	k := newKit(t, "ruby")
	if exec.CommandContext(k.ctx, "ruby", "-e", `require "pg"`).Run() != nil {
		t.Skip("this machine's Ruby has no pg")
	}
	k.start(nil, "ruby", "-e", `
require "./ruby/worker"
HANDLERS["bad"] = lambda { |input, _| { "nan" => Float::NAN, "bytes" => "\xff".b, "broken" => "\xff", "nul" => "\0" }.fetch(input) }
HANDLERS["raise"] = lambda { |input, _| raise input == "script" ? NotImplementedError.new("\xff\0".b) : "\xff\0" }
HANDLERS["echo"] = lambda { |input, _| input }
run("work_queue")
`)
	for _, input := range []string{`"nan"`, `"bytes"`, `"broken"`, `"nul"`} {
		e := k.await(k.submit("bad", input, 0))
		require.Equal(t, ended{State: "error", Type: "invalid_result", Deliveries: 1}, e, input)
	}
	require.Equal(t, "NotImplementedError", k.await(k.submit("raise", `"script"`, 0)).Type)
	require.Equal(t, "RuntimeError", k.await(k.submit("raise", `"text"`, 0)).Type)
	require.Equal(t, "7", k.await(k.submit("echo", "7", 0)).Result)
}
