package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/sql"
)

const upgradeTemplate = `
namespace: up
name: diamond
version: "1"
steps:
  - {name: first, handler: echo, lease: 2s, max_deliveries: 100}
  - {name: left, handler: sleep, needs: [first], lease: 2s, max_deliveries: 100}
  - {name: right, handler: sleep, needs: [first], lease: 2s, max_deliveries: 100}
  - {name: last, handler: echo, needs: [left, right], lease: 2s, max_deliveries: 100}
`

// errNoHistory says that there is nothing older to upgrade from.
var errNoHistory = errors.New("there is no git history with an older commit that can be built")

// older unpacks and builds the newest commit whose SQL functions have a lower number than this source's, or the one that
// PAWL_UPGRADE_FROM names.
func older(ctx context.Context, folder string) (commit string, programs Programs, err error) {
	git := func(arguments ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", arguments...).Output()
		return strings.TrimSpace(string(out)), err
	}
	root, err := git("rev-parse", "--show-toplevel")
	if err != nil {
		return "", programs, errNoHistory
	}
	if commit = os.Getenv("PAWL_UPGRADE_FROM"); commit == "" {
		commits, err := git("-C", root, "log", "--format=%h", "-n", "50", "--", "sql/functions.sum")
		if err != nil {
			return "", programs, errNoHistory
		}
		for _, one := range strings.Fields(commits) {
			var number int
			sum, err := git("-C", root, "show", one+":sql/functions.sum")
			if err != nil {
				continue
			}
			if _, err := fmt.Sscan(sum, &number); err == nil && number < sql.FunctionsVersion {
				commit = one
				break
			}
		}
	}
	if commit == "" {
		return "", programs, errNoHistory
	}
	source, built := filepath.Join(folder, "source"), filepath.Join(folder, "programs")
	if err := errors.Join(os.MkdirAll(source, 0o755), os.MkdirAll(built, 0o755)); err != nil {
		return "", programs, err
	}
	archive := filepath.Join(folder, "source.tar")
	if _, err := git("-C", root, "archive", "-o", archive, commit); err != nil {
		return "", programs, errNoHistory
	}
	if out, err := exec.CommandContext(ctx, "tar", "-xf", archive, "-C", source).CombinedOutput(); err != nil {
		return "", programs, fmt.Errorf("unpacking %s: %w: %s", commit, err, out)
	}
	if programs, err = Build(ctx, source, built, false); err != nil {
		err = fmt.Errorf("%w: %s: %w", errNoHistory, commit, err)
	}
	return commit, programs, err
}

func TestAnUpgradeUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	own, err := os.MkdirTemp(folder, "upgrade-")
	require.NoError(t, err)
	commit, old, err := older(t.Context(), own)
	if errors.Is(err, errNoHistory) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Logf("upgrading from %s to functions %d", commit, sql.FunctionsVersion)
	url := pgtest.EmptyURL(t)
	run := func(program string, arguments ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), program, append(arguments, "--database-url", url)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	file := filepath.Join(own, "up.yaml")
	require.NoError(t, os.WriteFile(file, []byte(upgradeTemplate), 0o600))
	run(old.Pawl, "migrate")
	run(old.Pawl, "template", "apply", file)
	s, err := NewStage(t.Context(), Config{DatabaseURL: url, Programs: old, Folder: own, Orchestrators: 2})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	queues := []string{"PAWL_QUEUES=up_queue:16"}
	add := func(kind, name, binary string) *Member {
		t.Helper()
		env := queues
		if kind == Orchestrator {
			env = []string{"PAWL_LISTEN=off", "PAWL_CONNECTIONS=4", "PAWL_VISIBILITY_TIMEOUT=4s", "PAWL_RECONCILE_EVERY=2s", "PAWL_RECONCILE_GRACE=5s"}
		}
		m, err := s.Add(kind, name, url, program{command: []string{binary}, env: env})
		require.NoError(t, err)
		return m
	}
	oldWorker, oldOrchestrators := add(Worker, "old-worker", old.Worker), s.Of(Orchestrator)
	producer := startProducer(t, s.Pool)

	producer.awaitMore(40)
	run(programs.Pawl, "migrate") // with the load on
	producer.awaitMore(40)
	add(Orchestrator, "new-orchestrator-1", programs.Orchestrator)
	newOrchestrator, newWorker := add(Orchestrator, "new-orchestrator-2", programs.Orchestrator), add(Worker, "new-worker", programs.Worker)
	producer.awaitMore(40)
	for _, m := range []*Member{oldOrchestrators[0], oldWorker, newOrchestrator, newWorker} {
		require.True(t, m.Kill(), m.Name)
		require.NoError(t, m.Start())
		producer.awaitMore(15)
	}
	for _, m := range []*Member{oldOrchestrators[0], oldOrchestrators[1], oldWorker} {
		m.Stop(20 * time.Second)
	}
	producer.awaitMore(40)
	all := producer.stop()
	awaitComplete(t, s, all)
	rest(t, s, nil, nil)
	require.Equal(t, len(all), count(t, s.Pool, `select count(*) from pawl.tasks`))
}

// producer sends requests until it is stopped.
type producer struct {
	t    *testing.T
	pool *pgxpool.Pool
	quit chan struct{}
	done chan struct{}

	mu     sync.Mutex
	sent   []uuid.UUID // guarded by mu
	failed error       // guarded by mu
}

func startProducer(t *testing.T, pool *pgxpool.Pool) *producer {
	p := &producer{t: t, pool: pool, quit: make(chan struct{}), done: make(chan struct{})}
	go p.run(t.Context())
	t.Cleanup(func() { p.stop() })
	return p
}

func (p *producer) run(ctx context.Context) {
	defer close(p.done)
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-p.quit:
			return
		case <-ticker.C:
		}
		for range 3 {
			id := uuid.Must(uuid.NewV7())
			_, err := p.pool.Exec(ctx, `select pgmq.send('orchestration_task_requests',
				jsonb_build_object('template', 'up/diamond', 'request_id', $1::uuid, 'input', '{"ms": 5}'::jsonb))`, id)
			p.mu.Lock()
			p.sent, p.failed = append(p.sent, id), errors.Join(p.failed, err)
			p.mu.Unlock()
		}
	}
}

// awaitMore waits until so many more tasks are complete than now.
func (p *producer) awaitMore(n int) {
	p.t.Helper()
	const complete = `select count(*) from pawl.tasks where state = 'complete'`
	before := count(p.t, p.pool, complete)
	require.Eventually(p.t, func() bool { return count(p.t, p.pool, complete) >= before+n }, patience, 50*time.Millisecond, "no progress")
}

// stop ends the sending and returns what was sent.
func (p *producer) stop() []uuid.UUID {
	p.t.Helper()
	p.mu.Lock()
	select {
	case <-p.quit:
	default:
		close(p.quit)
	}
	p.mu.Unlock()
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	require.NoError(p.t, p.failed)
	return p.sent
}
