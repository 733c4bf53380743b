package conformance

import (
	"fmt"
	"io"
	"strings"
)

// Outcome of one check.
type Outcome string

// What may become of a check.
const (
	Passes Outcome = "pass"
	Fails  Outcome = "FAIL"
	Cannot Outcome = "cannot" // at the worker's level nobody can pass it
)

// Result of one check.
type Result struct {
	Check   string  `json:"check"`
	Outcome Outcome `json:"outcome"`
	Detail  string  `json:"detail,omitempty"`
}

// Report of one worker.
type Report struct {
	Name    string   `json:"name"`
	Level   Level    `json:"level"`
	Results []Result `json:"results"`
	Silent  string   `json:"silent,omitempty"` // why no check was tried: the worker takes no steps
	Log     string   `json:"log,omitempty"`    // the end of what the worker wrote, when a check failed
}

// Failed counts the checks that failed.
func (r *Report) Failed() (n int) {
	for _, one := range r.Results {
		if one.Outcome == Fails {
			n++
		}
	}
	return n
}

// Passed counts the checks that passed.
func (r *Report) Passed() (n int) {
	for _, one := range r.Results {
		if one.Outcome == Passes {
			n++
		}
	}
	return n
}

// Summary is a line for people.
func (r *Report) Summary() string {
	return fmt.Sprintf("%s (level %d): %d passed, %d failed, %d that its level cannot pass",
		r.Name, r.Level, r.Passed(), r.Failed(), len(r.Results)-r.Passed()-r.Failed())
}

// Print writes a line for each check.
func (r *Report) Print(w io.Writer) {
	if r.Silent != "" {
		fmt.Fprintf(w, "The worker takes no steps, so that no check was tried: %s\n", r.Silent)
	} else {
		for _, one := range r.Results {
			fmt.Fprintln(w, one)
		}
	}
	fmt.Fprintln(w, r.Summary())
	if r.Log != "" {
		fmt.Fprintf(w, "The worker's last words:\n%s\n", r.Log)
	}
}

// String is the check's line in a table.
func (r Result) String() string {
	line := fmt.Sprintf("%-6s  %s", r.Outcome, r.Check)
	if r.Detail != "" {
		line += ": " + r.Detail
	}
	return line
}

// Markdown writes reports as one table: a row for each check, a column for each worker.
func Markdown(w io.Writer, reports []Report) {
	var head, rule strings.Builder
	for _, r := range reports {
		fmt.Fprintf(&head, " %s (level %d) |", r.Name, r.Level)
		rule.WriteString(" --- |")
	}
	fmt.Fprintf(w, "| check |%s\n| --- |%s\n", head.String(), rule.String())
	var notes []string
	for i, one := range reports[0].Results {
		fmt.Fprintf(w, "| %s |", one.Check)
		for _, r := range reports {
			fmt.Fprintf(w, " %s |", mark(r.Results[i], &notes))
		}
		fmt.Fprintln(w)
	}
	for i, note := range notes {
		fmt.Fprintf(w, "\n%d. %s", i+1, note)
	}
	if len(notes) > 0 {
		fmt.Fprintln(w)
	}
}

// mark is a cell; what a level cannot pass carries the number of the note that says why.
func mark(r Result, notes *[]string) string {
	switch r.Outcome {
	case Passes:
		return "✓"
	case Fails:
		return "✗"
	}
	for i, note := range *notes {
		if note == r.Detail {
			return fmt.Sprintf("– (%d)", i+1)
		}
	}
	*notes = append(*notes, r.Detail)
	return fmt.Sprintf("– (%d)", len(*notes))
}
