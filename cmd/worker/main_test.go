package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/worker"
)

const patience = 60 * time.Second

// dir holds the binary that build builds once, as its users build it.
var dir string

var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(dir, "worker")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("building the worker: %w: %s", err, out)
	}
	return path, err
})

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "pawl-worker"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir) // what is left is in a folder for temporary files
	os.Exit(code)
}

// process is a worker in a process of its own.
type process struct {
	*exec.Cmd
	ended chan error
}

func start(t *testing.T, pool *pgxpool.Pool, arguments ...string) *process {
	path, err := build()
	require.NoError(t, err)
	p := &process{Cmd: exec.Command(path, arguments...), ended: make(chan error, 1)}
	p.Env = append(os.Environ(), "PAWL_DATABASE_URL="+pool.Config().ConnString())
	var output bytes.Buffer
	p.Stdout, p.Stderr = &output, &output
	require.NoError(t, p.Start())
	go func() { p.ended <- p.Wait(); close(p.ended) }()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		for err := range p.ended {
			t.Logf("the worker ended: %v", err)
		}
		if t.Failed() {
			t.Logf("%s", output.String())
		}
	})
	return p
}

func submit(t *testing.T, pool *pgxpool.Pool, handler, input string) (task string) {
	require.NoError(t, pool.QueryRow(t.Context(), `
		select pawl.process_task_requests(jsonb_build_array(jsonb_build_object('msg_id', pgmq.send('orchestration_task_requests',
			jsonb_build_object('handler', $1::text, 'queue', 'work_queue', 'input', $2::text::jsonb)),
			'template_id', pawl.adhoc_template('default', $1::text, 'work_queue'))), 'test')->0->>'task_id'`, handler, input).Scan(&task))
	return task
}

func awaitState(t *testing.T, pool *pgxpool.Pool, task, state string) {
	require.Eventually(t, func() bool {
		var now string
		_, err := pool.Exec(t.Context(), `select pawl.apply_step_results(array(select msg_id from pgmq.q_orchestration_step_results), 'test')`)
		return err == nil && pool.QueryRow(t.Context(), `select state from pawl.steps where task_id = $1`, task).Scan(&now) == nil && now == state
	}, patience, 10*time.Millisecond)
}

func TestAWorkerKilledInTheMiddleLosesNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.DB(t)
	task := submit(t, pool, "sleep", `{"ms": 600000}`)
	first := start(t, pool, "--queues", "work_queue:2", "--name", "first")
	awaitState(t, pool, task, "in_progress")
	require.NoError(t, first.Process.Signal(syscall.SIGKILL))
	require.Error(t, <-first.ended)
	// The lease ends, as time would end it; the next delivery finds a step that does not take so long.
	_, err := pool.Exec(t.Context(), `update pgmq.q_work_queue set vt = clock_timestamp(), message = jsonb_set(message, '{input,ms}', '1')`)
	require.NoError(t, err)
	start(t, pool, "--queues", "work_queue", "--name", "second", "--handlers", "sleep,noop", "--poll", "50ms", "--listener-url", "off")
	awaitState(t, pool, task, "complete")
	var deliveries, attempt int
	require.NoError(t, pool.QueryRow(t.Context(), `select deliveries, attempt from pawl.steps where task_id = $1`, task).Scan(&deliveries, &attempt))
	require.GreaterOrEqual(t, deliveries, 2)
	require.Equal(t, 1, attempt, "a delivery more is the same attempt")
}

func TestSIGTERMHandsBackAndExitsWithZero(t *testing.T) {
	t.Parallel()
	pool := pgtest.DB(t)
	task := submit(t, pool, "sleep", `{"ms": 600000}`)
	p := start(t, pool, "--queues", "work_queue", "--grace", "10ms")
	awaitState(t, pool, task, "in_progress")
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-p.ended:
		require.NoError(t, err)
	case <-time.After(patience):
		require.Fail(t, "the worker does not stop")
	}
	var back int
	require.NoError(t, pool.QueryRow(context.Background(), `select count(*) from pgmq.q_work_queue where vt <= clock_timestamp()`).Scan(&back))
	require.Equal(t, 1, back)
}

func TestUsageErrorsExitWithTwo(t *testing.T) {
	t.Parallel()
	for _, arguments := range [][]string{
		{"--queues", "a:b", "--database-url", "postgres://localhost"}, {"--database-url", "postgres://localhost"}, {"rest"},
		{"--queues", "a", "--database-url", "postgres://localhost", "--listener-url", "postgres://:x:y"}, {"--log-level", "loud"}, {"--nonsense"},
		{"--queues", "default_queue", "--handlers", "nope", "--database-url", "postgres://localhost"},
		{"--queues", "No Such", "--database-url", "postgres://localhost"}, {"--queues", "a", "--database-url", "nonsense"},
	} {
		require.Equal(t, 2, run(t.Context(), arguments), arguments)
	}
	require.Equal(t, 0, run(t.Context(), []string{"--help"}))
	queues, err := parseQueues([]string{"a", "b:4"}, 32)
	require.NoError(t, err)
	require.Equal(t, []worker.Queue{{Name: "a", Concurrency: 32}, {Name: "b", Concurrency: 4}}, queues)
}
