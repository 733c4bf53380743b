package docs

import (
	"flag"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "point the links of docs/guarantees.md at the files that hold the tests")

var (
	testName     = regexp.MustCompile("`(Test[A-Z]\\w*)`")
	testLink     = regexp.MustCompile("\\[`(Test[A-Z]\\w*)`\\]\\(([^)]*)\\)")
	testFunction = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
)

// testFiles gives the Go files in which each test function stands.
func testFiles(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, match := range testFunction.FindAllStringSubmatch(string(text), -1) {
			relative, err := filepath.Rel(filepath.Join(root, "docs"), file)
			if err != nil {
				return err
			}
			found[match[1]] = append(found[match[1]], filepath.ToSlash(relative))
		}
		return nil
	}))
	return found
}

// A promise without its test is none: every test that docs/guarantees.md names exists, in the file that it links to.
// After a test was moved: go test ./internal/docs -run Guarantees -update
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	file := filepath.Join(root, "docs", "guarantees.md")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	files := testFiles(t)
	if *update {
		text = testLink.ReplaceAllFunc(text, func(link []byte) []byte {
			match := testLink.FindSubmatch(link)
			name, target := string(match[1]), string(match[2])
			if places := files[name]; len(places) > 0 && !slices.Contains(places, target) {
				return []byte("[`" + name + "`](" + places[0] + ")")
			}
			return link
		})
		require.NoError(t, os.WriteFile(file, text, 0o644)) //nolint:gosec // a document
	}
	linked := testLink.FindAllStringSubmatch(string(text), -1)
	require.Len(t, testName.FindAllString(string(text), -1), len(linked), "a test is named without a link to its file")
	for _, match := range linked {
		name, target := match[1], match[2]
		switch places := files[name]; {
		case len(places) == 0:
			t.Errorf("%s does not exist", name)
		case !slices.Contains(places, path.Clean(target)):
			t.Errorf("%s stands in %s, not in %s", name, strings.Join(places, ", "), target)
		}
	}
}

// Every rule of the house has a row, with a test, and so does every item of a list: no empty last column.
func TestGuaranteesHaveATestOrAReasonEach(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	require.NoError(t, err)
	architecture, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	require.NoError(t, err)
	for _, rule := range regexp.MustCompile(`(?m)^\| (R\d+) `).FindAllStringSubmatch(string(architecture), -1) {
		require.Regexp(t, `(?m)^\| `+rule[1]+` .*\(\.\./.*_test\.go\)`, string(text), "%s has no test", rule[1])
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if strings.HasPrefix(line, "| ") && strings.TrimSpace(cells[len(cells)-1]) == "" {
			t.Errorf("nothing stands behind: %s", strings.TrimSpace(line))
		}
	}
}
