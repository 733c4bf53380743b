// Command mutants puts deliberate defects into a copy of the tree, one at a time, and runs the tests that should find each.
// It prints a table and writes it to docs/mutants.md. A defect that nothing finds is a hole in the tests: it exits 1.
//
//	go run ./internal/testrun go run ./test/mutants [-only TEXT]
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	only := flag.String("only", "", "apply only defects whose description or file contains this; writes no table")
	flag.Parse()
	missed, err := run(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if missed > 0 {
		os.Exit(1)
	}
}

// run tries the defects and tells how many were not found.
func run(only string) (int, error) {
	dir, err := copyTree()
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := healthy(dir, only); err != nil {
		return 0, err
	}
	var outcomes []outcome
	missed := 0
	for _, d := range defects() {
		if !strings.Contains(d.What+" "+d.File, only) {
			continue
		}
		o, err := try(dir, d)
		if err != nil {
			return missed, fmt.Errorf("trying %q in %s: %w", d.What, d.File, err)
		}
		if o.foundBy == "" {
			missed++
		}
		outcomes = append(outcomes, o)
		fmt.Println(o.line(len(outcomes)))
	}
	fmt.Printf("%d defects, %d found\n", len(outcomes), len(outcomes)-missed)
	if only != "" {
		return missed, nil
	}
	return missed, write("docs/mutants.md", outcomes)
}

// healthy runs all tests without a defect: one that fails anyway finds nothing.
func healthy(dir, only string) error {
	seen := map[tests]bool{}
	for _, d := range defects() {
		for _, t := range d.Tests {
			if seen[t] || !strings.Contains(d.What+" "+d.File, only) {
				continue
			}
			seen[t] = true
			name, err := t.find(dir)
			if err != nil {
				return fmt.Errorf("without a defect: %w", err)
			} else if name != "" {
				return fmt.Errorf("without a defect: %s fails, with PAWL_TEST_ONLY=%q", name, t.only)
			}
		}
	}
	fmt.Printf("%d sets of tests pass without a defect\n", len(seen))
	return nil
}
