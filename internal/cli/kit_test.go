package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/orchestrator"
	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/worker"
)

// deadline of everything that a test waits for: generous, since the machine may be busy.
const deadline = 60 * time.Second

// outcome of one run of pawl.
type outcome struct {
	code     int
	out, err string
}

// shell runs pawl on one database.
type shell struct {
	t   *testing.T
	url string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	return &shell{t: t, url: pgtest.URL(t)}
}

// run runs pawl with the arguments.
func (s *shell) run(args ...string) outcome {
	return s.feed("", args...)
}

// feed is run with a standard input.
func (s *shell) feed(stdin string, args ...string) outcome {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), deadline)
	defer cancel()
	var out, errs bytes.Buffer
	if s.url != "" {
		args = append(args, "--database-url", s.url)
	}
	code := Run(ctx, args, Streams{In: strings.NewReader(stdin), Out: &out, Err: &errs})
	return outcome{code: code, out: out.String(), err: errs.String()}
}

// ok is run for commands that must succeed; it returns what they printed.
func (s *shell) ok(args ...string) string {
	s.t.Helper()
	o := s.run(args...)
	require.Equal(s.t, ExitOK, o.code, "pawl %v: %s%s", args, o.out, o.err)
	require.Empty(s.t, o.err)
	return o.out
}

// decode is ok with --json, decoded into a T.
func decode[T any](s *shell, args ...string) T {
	s.t.Helper()
	var value T
	text := s.ok(append(args, "--json")...)
	require.NoError(s.t, json.Unmarshal([]byte(text), &value), text)
	return value
}

// sql runs a statement and returns its first value as text.
func (s *shell) sql(statement string, args ...any) string {
	s.t.Helper()
	pool, err := pgxpool.New(s.t.Context(), s.url)
	require.NoError(s.t, err)
	defer pool.Close()
	var value *string
	require.NoError(s.t, pool.QueryRow(s.t.Context(), statement, args...).Scan(&value))
	if value == nil {
		return ""
	}
	return *value
}

// apply writes a template into a file and applies it.
func (s *shell) apply(yaml string) {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "template.yaml")
	require.NoError(s.t, os.WriteFile(file, []byte(yaml), 0o600))
	s.ok("template", "apply", file)
}

const diamond = `
namespace: test
name: diamond
description: A diamond.
on_failure: finish
retry: {max_attempts: 1}
steps:
  - {name: first, handler: test.echo}
  - {name: left, handler: test.echo, needs: [first]}
  - {name: right, handler: test.fail_on_demand, needs: [first]}
  - {name: last, handler: test.echo, needs: [left, right]}
`

type input struct {
	Fail bool `json:"fail"`
	N    int  `json:"n"`
}

// engine runs an orchestrator, and a worker for the template diamond until the test ends.
func (s *shell) engine() {
	s.t.Helper()
	s.apply(diamond)
	s.orchestrate()
	w, err := worker.New(worker.Config{DatabaseURL: s.url, Queues: []worker.Queue{{Name: "test_queue", Concurrency: 4}}, Log: quiet()})
	require.NoError(s.t, err)
	worker.Handle(w, "test.echo", func(_ context.Context, step worker.Step[input]) (map[string]any, error) {
		return map[string]any{"step": step.Name, "n": step.Input.N}, nil
	})
	worker.Handle(w, "test.fail_on_demand", func(_ context.Context, step worker.Step[input]) (map[string]any, error) {
		if step.Input.Fail {
			return nil, worker.Permanent(worker.Error{Type: "on_demand", Err: errors.New("refused\x1b[2J\n\ton demand")})
		}
		return map[string]any{"step": step.Name}, nil
	})
	require.NoError(s.t, w.Start(s.t.Context()))
	s.t.Cleanup(func() { _ = w.Stop(context.Background()) }) // the test has ended: nothing is left to lose
}

// orchestrate runs an orchestrator until the test ends.
func (s *shell) orchestrate() {
	s.t.Helper()
	o, err := orchestrator.Start(s.t.Context(), orchestrator.Config{DatabaseURL: s.url, Connections: 4, Logger: quiet()})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = o.Stop(context.Background()) }) // as above
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// submitDiamond starts a task and returns its id.
func (s *shell) submitDiamond(input string) string {
	s.t.Helper()
	return decode[decision](s, "submit", "test/diamond", "--input", input).TaskID.String()
}

// safeBuffer may be written and read at once.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
