// Transitions writes the migration that fills pawl.legal_transitions from the
// transitions that stand in workflow/. It is run by go generate.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/pawl-dev/pawl/workflow"
)

func main() {
	out := flag.String("out", "", "file to write; empty writes to standard output")
	flag.Parse()
	sql := render(workflow.LegalTransitions())
	if *out == "" {
		fmt.Print(sql)
		return
	}
	if err := os.WriteFile(*out, []byte(sql), 0o644); err != nil {
		fmt.Fprintf(os.Stderr, "writing the legal transitions: %v\n", err)
		os.Exit(1)
	}
}
