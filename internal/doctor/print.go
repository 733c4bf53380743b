package doctor

import (
	"fmt"
	"io"
)

// Print writes a report for people.
func Print(w io.Writer, r Report) {
	for _, v := range r.Violations {
		fmt.Fprintf(w, "%s %s\n", v.ID, v.Says)
		for _, s := range v.Samples {
			fmt.Fprintf(w, "    %s: %s\n", s.Subject, s.Found)
		}
		if more := v.Count - len(v.Samples); more > 0 {
			fmt.Fprintf(w, "    and %d more\n", more)
		}
	}
	state := "all hold"
	if !r.Healthy() {
		state = "NOT all hold"
	} else if len(r.Violations) > 0 {
		state = "all hold; above is advice"
	}
	when := "while things may happen (--at-rest asks more)"
	if r.AtRest {
		when = "at rest"
	}
	fmt.Fprintf(w, "%d invariants asked of %s in one snapshot, %s: %s.\n", r.Checked, r.Database, when, state)
}
