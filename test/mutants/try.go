package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// defect is a change of one file that some test must find.
type defect struct {
	What string
	File string
	// Changes are pairs: a text that stands in the file exactly once, and what takes its place.
	Changes []string
	// Tests that should find it, in this order: package, pattern of tests, PAWL_TEST_ONLY.
	Tests []tests
}

type tests struct{ pkg, run, only string }

type outcome struct {
	defect
	foundBy string
}

func (o outcome) line(n int) string {
	found := o.foundBy
	if found == "" {
		found = "**not found**"
	}
	return fmt.Sprintf("| %d | %s | `%s` | %s |", n, o.What, o.File, found)
}

// mutate gives a file's text with the defect in it.
func (d defect) mutate(text string) (string, error) {
	for i := 0; i < len(d.Changes); i += 2 {
		if n := strings.Count(text, d.Changes[i]); n != 1 {
			return "", fmt.Errorf("%q stands in the file %d times, not once: adapt the defect", d.Changes[i], n)
		}
		text = strings.Replace(text, d.Changes[i], d.Changes[i+1], 1)
	}
	return text, nil
}

// try applies a defect in the copy, runs its tests, and takes it back.
func try(dir string, d defect) (outcome, error) {
	o := outcome{defect: d}
	path := filepath.Join(dir, d.File)
	text, err := os.ReadFile(path)
	if err != nil {
		return o, err
	}
	mutated, err := d.mutate(string(text))
	if err != nil {
		return o, err
	}
	if err := os.WriteFile(path, []byte(mutated), 0o644); err != nil { //nolint:gosec // a copy of a source file
		return o, err
	}
	for _, t := range d.Tests {
		if o.foundBy, err = t.find(dir); err != nil || o.foundBy != "" {
			break
		}
	}
	return o, errors.Join(err, os.WriteFile(path, text, 0o644)) //nolint:gosec // as above
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// part of a test that only says which of its workers met the defect.
var part = regexp.MustCompile(`/crash(/\d+)?$`)

// find runs tests and names the one that failed; "" when all passed.
func (t tests) find(dir string) (string, error) {
	cmd := exec.Command("go", "test", "-count=1", "-timeout=240s", "-failfast", "-run", t.run, t.pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PAWL_TEST_SEED=1", "PAWL_TEST_OPERATIONS=6000", "PAWL_TEST_SHRINK=1ms", "PAWL_TEST_ONLY="+t.only)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil && !strings.Contains(out.String(), "no tests to run"):
		return "", nil
	case err == nil:
		return "", fmt.Errorf("no test matches %s in %s", t.run, t.pkg)
	case !errors.As(err, &exit) || strings.Contains(out.String(), "[build failed]"):
		return "", fmt.Errorf("running %s: %w\n%s", t.pkg, err, out.String())
	case strings.Contains(out.String(), "panic: test timed out"):
		return fmt.Sprintf("%s (hangs)", t.pkg), nil
	}
	name := "?"
	for _, found := range failed.FindAllStringSubmatch(out.String(), -1) {
		if len(found[1]) > len(name) || name == "?" {
			name = found[1]
		}
	}
	if name == "?" {
		return "", fmt.Errorf("%s fails without a failed test:\n%s", t.pkg, out.String())
	}
	return fmt.Sprintf("`%s` %s", t.pkg, part.ReplaceAllString(name, "")), nil
}

// copyTree copies what git knows, as it is in the work tree, into a new folder.
func copyTree() (string, error) {
	dir, err := os.MkdirTemp("", "pawl-mutants-")
	if err != nil {
		return "", err
	}
	list, err := exec.Command("git", "ls-files", "-co", "--exclude-standard", "*.go", "*.sql", "*.sum", "*.mod", "*.json", "*.yaml", "*.md").Output()
	if err != nil {
		return "", fmt.Errorf("listing the tree: %w", err)
	}
	for _, name := range strings.Fields(string(list)) {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, not yet committed
		} else if err != nil {
			return "", err
		}
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // a copy of source files
			return "", err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil { //nolint:gosec // as above
			return "", err
		}
	}
	return dir, nil
}

// write puts the table into a document.
func write(path string, outcomes []outcome) error {
	var text strings.Builder
	text.WriteString("# Deliberate defects\n\nWritten by `make mutants`: each defect is put into a copy of the tree, alone, and the tests " +
		"named must find it.\n\n| # | defect | file | found by |\n| --- | --- | --- | --- |\n")
	found := 0
	for i, o := range outcomes {
		text.WriteString(o.line(i+1) + "\n")
		if o.foundBy != "" {
			found++
		}
	}
	fmt.Fprintf(&text, "\n%d defects, %d found.\n", len(outcomes), found)
	return os.WriteFile(path, []byte(text.String()), 0o644) //nolint:gosec // a document
}
