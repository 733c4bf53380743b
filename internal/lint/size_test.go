package lint

import (
	"go/ast"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Limits in lines. The aims are a third of them.
const (
	maxFile         = 400
	maxFunction     = 90
	maxTestFunction = 120
	maxSQLFunction  = 120
	maxMain         = 150
)

func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	files, err := read(".go", ".sql", ".py", ".ts", ".js", ".sh")
	require.NoError(t, err)
	for _, f := range files {
		limit := maxFile
		if strings.HasPrefix(f.path, "cmd/") && strings.HasSuffix(f.path, "/main.go") {
			limit = maxMain
		}
		if f.lines() > limit && !f.generated() {
			t.Errorf("%s has %d lines, more than %d: split it by what it speaks of", f.path, f.lines(), limit)
		}
	}
}

func TestFunctionsAreShort(t *testing.T) {
	t.Parallel()
	files, err := readGo()
	require.NoError(t, err)
	for _, f := range files {
		limit := maxFunction
		if f.test() {
			limit = maxTestFunction
		}
		for _, declaration := range f.tree.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok || f.generated() {
				continue
			}
			if lines := f.line(function.End()) - f.line(function.Pos()) + 1; lines > limit {
				t.Errorf("%s:%d: %s has %d lines, more than %d", f.path, f.line(function.Pos()), function.Name.Name, lines, limit)
			}
		}
	}
}

// imposed are methods whose parameters somebody else's interface decides.
var imposed = map[string]bool{"HandleFailure": true} // Proto.Actor's SupervisorStrategy

func TestFunctionsTakeFewParameters(t *testing.T) {
	t.Parallel()
	files, err := readGo()
	require.NoError(t, err)
	for _, f := range files {
		for _, declaration := range f.tree.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if ok && !f.test() && parameters(function) > 4 && !imposed[function.Name.Name] {
				t.Errorf("%s:%d: %s has %d parameters besides its context: take a struct",
					f.path, f.line(function.Pos()), function.Name.Name, parameters(function))
			}
		}
	}
}

// parameters without a context, which is no decision of the function's.
func parameters(function *ast.FuncDecl) int {
	count := 0
	for _, field := range function.Type.Params.List {
		if selector, ok := field.Type.(*ast.SelectorExpr); ok && selector.Sel.Name == "Context" {
			continue
		}
		count += max(1, len(field.Names))
	}
	return count
}

func TestSQLFunctionsAreShortAndSayWhatTheyDo(t *testing.T) {
	t.Parallel()
	files, err := read(".sql")
	require.NoError(t, err)
	for _, f := range files {
		if !strings.HasPrefix(f.path, "sql/functions/") {
			continue
		}
		if f.lines() > maxSQLFunction {
			t.Errorf("%s has %d lines, more than %d", f.path, f.lines(), maxSQLFunction)
		}
		want := []string{"-- does: ", "-- called by: ", "-- locks: ", "-- raises: "}
		for line := range strings.Lines(string(f.text)) { // each may go on over several lines
			if len(want) > 0 && strings.HasPrefix(line, want[0]) {
				want = want[1:]
			} else if !strings.HasPrefix(line, "-- ") || len(want) == 4 {
				break
			}
		}
		if len(want) > 0 {
			t.Errorf("%s: its first comment lacks %q", f.path, want[0])
		}
	}
}
