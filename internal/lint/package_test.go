package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every package says what it is: in doc.go; a command may say it in main.go.
func TestPackagesAreExplained(t *testing.T) {
	t.Parallel()
	files, err := readGo()
	require.NoError(t, err)
	explained := map[string]bool{}
	for _, f := range files {
		if f.test() {
			continue
		}
		name := f.path[strings.LastIndex(f.path, "/")+1:]
		right := name == "doc.go" || name == "main.go" && f.tree.Name.Name == "main" || f.dir() == "sql"
		explained[f.dir()] = explained[f.dir()] || right && f.tree.Doc != nil
	}
	for dir, ok := range explained {
		if !ok {
			t.Errorf("%s has no package comment in doc.go", dir)
		}
	}
}

func TestTestsDoNotSleep(t *testing.T) {
	t.Parallel()
	files, err := readGo()
	require.NoError(t, err)
	for _, f := range files {
		if !f.test() && !strings.HasSuffix(f.dir(), "test") && !within(f.dir(), "test") {
			continue
		}
		for _, line := range calls(f, "time", "Sleep") {
			t.Errorf("%s:%d: wait for a condition with a deadline instead of sleeping", f.path, line)
		}
	}
}

// calls returns the lines that use one of the names of a package.
func calls(f goFile, pkg string, names ...string) []int {
	var lines []int
	ast.Inspect(f.tree, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok || !slices.Contains(names, selector.Sel.Name) {
			return true
		}
		if name, ok := selector.X.(*ast.Ident); ok && name.Name == pkg {
			lines = append(lines, f.line(selector.Pos()))
		}
		return true
	})
	return lines
}
