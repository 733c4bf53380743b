package e2e

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// deadline of everything that is waited for: the machine may be busy.
const deadline = 120 * time.Second

// binaries builds what the tests run, once, into a folder that outlives the single test.
var binaries = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pawl-e2e-")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator),
		"github.com/pawl-dev/pawl/cmd/pawl", "github.com/pawl-dev/pawl/cmd/orchestrator", "github.com/pawl-dev/pawl/test/e2e/echoworker")
	if out, err := build.CombinedOutput(); err != nil {
		return dir, &buildError{err: err, out: out}
	}
	return dir, nil
})

type buildError struct {
	err error
	out []byte
}

func (e *buildError) Error() string {
	return "building the binaries: " + e.err.Error() + "\n" + string(e.out)
}

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := binaries(); dir != "" { // its error has failed the tests that wanted them
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

func binary(t *testing.T, name string) string {
	t.Helper()
	dir, err := binaries()
	require.NoError(t, err)
	return filepath.Join(dir, name)
}

// process is a program that is killed and started again, until the test ends.
type process struct {
	t    *testing.T
	name string
	path string
	env  []string
	log  *lastLines
	cmd  *exec.Cmd
}

func startProcess(t *testing.T, name, path string, env ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, path: path, env: env, log: &lastLines{}}
	p.start()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("end of the log of %s:\n%s", p.name, p.log)
		}
	})
	return p
}

func (p *process) start() {
	p.t.Helper()
	p.cmd = exec.Command(p.path)
	p.cmd.Env = append(os.Environ(), p.env...)
	p.cmd.Stdout, p.cmd.Stderr = io.Writer(p.log), p.log
	require.NoError(p.t, p.cmd.Start(), p.name)
}

// kill ends the process with SIGKILL and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()         // killed: always an error
}

// lastLines keeps the end of a log.
type lastLines struct {
	mu   sync.Mutex
	text []byte
}

func (l *lastLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if len(l.text) > 16<<10 {
		l.text = bytes.Clone(l.text[len(l.text)-8<<10:])
	}
	return len(p), nil
}

func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// count gives the number that a query finds.
func count(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, pool.QueryRow(t.Context(), sql, args...).Scan(&n), sql)
	return n
}
