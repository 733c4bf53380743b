package lint

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

var emptyWords = []string{"Manager", "Helper", "Helpers", "Util", "Utils", "Impl", "Info"}

func TestTypesAreNamedAfterWhatTheyAre(t *testing.T) {
	t.Parallel()
	files, err := readGo()
	require.NoError(t, err)
	for _, f := range files {
		ast.Inspect(f.tree, func(node ast.Node) bool {
			declared, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			for _, word := range words(declared.Name.Name) {
				if slices.Contains(emptyWords, word) {
					t.Errorf("%s:%d: type %s: %q says nothing", f.path, f.line(declared.Pos()), declared.Name.Name, word)
				}
			}
			return true
		})
	}
}

func TestWordsAreSplitAtCapitals(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"Task", "Info"}, words("taskInfo"))
	require.Equal(t, []string{"Information"}, words("Information"))
}

// words of a name in camel case, each with a capital.
func words(name string) []string {
	var found []string
	for i, letter := range name {
		if i == 0 || unicode.IsUpper(letter) {
			found = append(found, "")
			letter = unicode.ToUpper(letter)
		}
		found[len(found)-1] += string(letter)
	}
	return found
}

// foreign must not be in the repository: paths of somebody's machine, and hosts that only an ordinary client of a package
// registry should know. In pieces, so that this file does not find itself.
var foreign = []string{
	"/wo" + "rk/main", "/wo" + "rk/shared", "/wo" + "rk/notes", "/wo" + "rk/.library", "registry." + "npmjs", "proxy." + "golang.org",
	"sum." + "golang.org", "deb." + "debian.org", "files." + "pythonhosted.org",
}

func TestRepositorySpeaksOfItselfAlone(t *testing.T) {
	t.Parallel()
	files, err := read()
	require.NoError(t, err)
	for _, f := range files {
		for _, text := range foreign {
			if strings.Contains(string(f.text), text) {
				t.Errorf("%s mentions %s", f.path, text)
			}
		}
	}
}

var stateUpdate = regexp.MustCompile(`(?i)(update\s+(only\s+)?|delete\s+from\s+|insert\s+into\s+)pawl\.(tasks|steps)\b`)

// Only SQL functions move state: the rule that lets the database promise what it promises.
func TestGoMovesNoState(t *testing.T) {
	t.Parallel()
	files, err := readGo()
	require.NoError(t, err)
	for _, f := range files {
		if found := stateUpdate.FindIndex(f.text); found != nil && !f.test() {
			line := 1 + strings.Count(string(f.text[:found[0]]), "\n")
			t.Errorf("%s:%d: only functions in sql/functions write tasks and steps", f.path, line)
		}
	}
}
