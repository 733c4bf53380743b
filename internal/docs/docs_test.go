package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/cli"
)

func read(t *testing.T) []document {
	t.Helper()
	all, err := documents()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

var link = regexp.MustCompile(`\]\(([^()\s]+)\)`)

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	all := read(t)
	anchors := map[string]map[string]bool{}
	for _, d := range all {
		anchors[d.path] = d.anchors()
	}
	for _, d := range all {
		_, prose := d.snippets()
		for _, p := range prose {
			for _, match := range link.FindAllStringSubmatch(p.text, -1) {
				target, anchor, _ := strings.Cut(match[1], "#")
				if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
					continue
				}
				where := d.path
				if target != "" {
					where = path.Join(path.Dir(d.path), target)
				}
				if _, err := os.Stat(filepath.Join(root, where)); err != nil {
					t.Errorf("%s:%d: link to %s, which is not there", d.path, p.line, where)
				} else if anchor != "" && strings.HasSuffix(where, ".md") && !anchors[where][anchor] {
					t.Errorf("%s:%d: link to #%s, which %s does not have", d.path, p.line, anchor, where)
				}
			}
		}
	}
}

func TestCommandsInDocumentsExist(t *testing.T) {
	t.Parallel()
	tree := cli.Commands()
	for _, d := range read(t) {
		code, _ := d.snippets()
		for _, s := range code {
			for _, problem := range checkCalls(tree, s.text) {
				t.Errorf("%s:%d: %s", d.path, s.line, problem)
			}
		}
	}
}

func TestCommandsInHelpExist(t *testing.T) {
	t.Parallel()
	tree := cli.Commands()
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for _, line := range strings.Split(c.Long+"\n"+c.Example, "\n") {
			for _, problem := range checkCalls(tree, strings.TrimSpace(line)) {
				t.Errorf("help of %s: %s", c.CommandPath(), problem)
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(tree)
}

func TestMakeTargetsInDocumentsExist(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	targets := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):`).FindAllStringSubmatch(string(makefile), -1) {
		targets[match[1]] = true
	}
	call := regexp.MustCompile(`(?:^|&& |\$ )make ((?:[a-z][a-z-]* ?)+)`)
	for _, d := range read(t) {
		code, _ := d.snippets()
		for _, s := range code {
			for _, match := range call.FindAllStringSubmatch(s.text, -1) {
				for _, target := range strings.Fields(match[1]) {
					if !targets[target] {
						t.Errorf("%s:%d: there is no make %s", d.path, s.line, target)
					}
				}
			}
		}
	}
}

// A checker that cannot fail is worthless.
func TestCheckerFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	tree := cli.Commands()
	for line, problems := range map[string]int{
		"pawl task list --state error": 0, "pawl tsak list": 1, "pawl task lst": 1, "bin/pawl demo --keeep": 1,
		"cat x | pawl template apply - && pawl watch --no": 1, "pawl submit shop/x --input '{--a}' | jq --raw": 0,
		"pawl COMMAND --help": 0, "$ pawl queue pause x --reson": 1, "the pawl lets go": 0, "pawl": 0,
	} {
		require.Len(t, checkCalls(tree, line), problems, line)
	}
	d := document{lines: []string{"# A `b` c!", "```", "# no", "pawl \\", "  x", "```", "see `pawl y`"}}
	require.Equal(t, map[string]bool{"a-b-c": true}, d.anchors())
	code, _ := d.snippets()
	require.Equal(t, []snippet{{1, "b"}, {3, "# no"}, {5, "pawl x"}, {7, "pawl y"}}, code)
}
