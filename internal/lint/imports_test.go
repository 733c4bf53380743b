package lint

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/pawl-dev/pawl/"

// upper packages that a folder's packages must not import: imports point one way.
var upper = map[string][]string{
	"workflow":       {"messaging", "actors", "worker", "client", "cmd", "internal/store", "internal/migrate", "internal/telemetry"},
	"messaging":      {"actors", "worker", "client", "cmd", "internal/store", "internal/migrate"},
	"messaging/pgmq": {""}, // nothing of the module
	"internal/store": {"actors", "worker", "client", "cmd", "internal/orchestrator", "internal/cli", "internal/telemetry"},
	"actors":         {"worker", "client", "cmd", "internal/orchestrator", "internal/cli", "internal/demo"},
	"worker":         {"actors", "cmd", "internal/orchestrator", "internal/cli", "internal/demo"},
	"client":         {"actors", "worker", "cmd", "internal/orchestrator", "internal/cli", "internal/demo"},
	"internal":       {"cmd"},
}

func TestImportsPointOneWay(t *testing.T) {
	t.Parallel()
	files, err := readGo()
	require.NoError(t, err)
	for _, f := range files {
		if f.test() {
			continue
		}
		for _, path := range imports(f) {
			imported, own := strings.CutPrefix(path, module)
			if !own {
				continue
			}
			for folder, forbidden := range upper {
				if !within(f.dir(), folder) || within(imported, folder) {
					continue
				}
				for _, name := range forbidden {
					if name == "" || within(imported, name) {
						t.Errorf("%s imports %s: %s may not", f.path, imported, folder)
					}
				}
			}
		}
	}
}

// outside are packages that touch files, the network, a database or processes.
var outside = []string{
	"os", "os/exec", "io/ioutil", "net", "net/http", "database/sql", "log", "log/slog", "syscall", "math/rand", "math/rand/v2",
	"github.com/jackc/pgx/v5", "github.com/jackc/pgx/v5/pgxpool", "github.com/jackc/pgx/v5/pgconn",
}

func TestWorkflowIsPure(t *testing.T) {
	t.Parallel()
	files, err := readGo()
	require.NoError(t, err)
	for _, f := range files {
		if f.test() || !within(f.dir(), "workflow") {
			continue
		}
		for _, path := range imports(f) {
			if slices.Contains(outside, path) {
				t.Errorf("%s imports %s: workflow does no I/O", f.path, path)
			}
		}
		for _, call := range calls(f, "time", "Now", "Since", "Sleep", "After") {
			t.Errorf("%s:%d: workflow has no clock", f.path, call)
		}
	}
}

func TestTestPackagesStayOutOfBinaries(t *testing.T) {
	t.Parallel()
	files, err := readGo()
	require.NoError(t, err)
	for _, f := range files {
		if f.test() || within(f.dir(), "internal/testrun") || within(f.dir(), "test") || f.dir() == "internal/pgtest" {
			continue
		}
		for _, path := range imports(f) {
			if path == module+"internal/pgtest" || path == "testing" {
				if strings.HasSuffix(f.dir(), "test") { // a package of helpers for tests
					continue
				}
				t.Errorf("%s imports %s: only tests do", f.path, path)
			}
		}
	}
}

func imports(f goFile) []string {
	var paths []string
	for _, spec := range f.tree.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic(err) // the parser has read it
		}
		paths = append(paths, path)
	}
	return paths
}

func within(dir, folder string) bool { return dir == folder || strings.HasPrefix(dir, folder+"/") }
