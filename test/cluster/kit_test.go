package cluster

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
)

// patience with everything that is waited for: the machine may be busy.
const patience = 2 * time.Minute

var (
	programs Programs
	folder   string // of the programs and of the tests' files; PgBouncer's user may read it
)

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "pawl-cluster-"); err == nil {
		err = os.Chmod(folder, 0o755)
	}
	if err == nil {
		programs, err = Build(context.Background(), "", folder, true)
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(folder) // what is left is in a folder for temporary files
	os.Exit(code)
}

// set sets a stage on a database of the test's own, and prints the ends of the logs when the test fails.
func set(t *testing.T, config Config) *Stage {
	t.Helper()
	own, err := os.MkdirTemp(folder, "stage-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(own, 0o755))
	if config.DatabaseURL == "" {
		config.DatabaseURL = pgtest.URL(t)
	}
	config.Programs, config.Folder = programs, own
	pool, err := pgxpool.New(t.Context(), config.DatabaseURL)
	require.NoError(t, err)
	require.NoError(t, Prepare(t.Context(), pool))
	pool.Close()
	s, err := NewStage(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			for _, m := range s.Members {
				if m.Process != nil {
					t.Logf("end of the log of %s:\n%s", m.Name, tail(m.LogFile))
				}
			}
		}
		s.Close()
	})
	return s
}

func tail(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4000):])
}

// request sends requests as any producer would, in one statement, and returns the tasks' ids.
func request(t *testing.T, pool *pgxpool.Pool, n int, fields map[string]any) []uuid.UUID {
	t.Helper()
	ids, bodies := make([]uuid.UUID, n), make([]string, n)
	for i := range n {
		ids[i] = uuid.Must(uuid.NewV7())
		body := map[string]any{"template": Diamond, "input": map[string]any{"ms": 1}}
		for name, value := range fields {
			body[name] = value
		}
		body["request_id"] = ids[i]
		text, err := json.Marshal(body)
		require.NoError(t, err)
		bodies[i] = string(text)
	}
	_, err := pool.Exec(t.Context(), `select pgmq.send_batch('orchestration_task_requests', $1::text[]::jsonb[])`, bodies)
	require.NoError(t, err)
	return ids
}

// count gives the number that a query finds.
func count(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), sql, args...).Scan(&n), sql)
	return n
}

// awaitComplete waits until tasks are complete.
func awaitComplete(t *testing.T, s *Stage, ids []uuid.UUID) {
	t.Helper()
	require.Eventually(t, func() bool {
		return count(t, s.Pool, `select count(*) from pawl.tasks where task_id = any ($1) and state = 'complete'`, ids) == len(ids)
	}, patience, 20*time.Millisecond, "waiting for %d tasks", len(ids))
}

// rest waits until nothing is left to do, then asks for the verdict: nothing may be wrong.
func rest(t *testing.T, s *Stage, l *Load, copied map[StepName]bool) Verdict {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var history *History
	waiting := l
	if l == nil {
		waiting = &Load{History: NewHistory(), stage: s}
	} else {
		history = l.History
	}
	require.NoError(t, waiting.Settle(ctx))
	v, err := s.Judge(ctx, history, copied)
	require.NoError(t, err)
	require.Empty(t, v.Violations)
	out, err := exec.CommandContext(ctx, programs.Pawl, "doctor", "--at-rest", "--grace", "1ms", "--database-url", s.Config.DatabaseURL).CombinedOutput()
	require.NoError(t, err, "%s", out)
	lines, err := s.LogLines("panic", 3)
	require.NoError(t, err)
	require.Empty(t, lines)
	return v
}
