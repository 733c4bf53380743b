package workflow

import (
	"fmt"
	"slices"
	"strings"
)

// maxProblems bounds how many problems one file is told of.
const maxProblems = 1000

// Problem is one thing wrong with a file of templates.
type Problem struct {
	File string
	// Line counts from 1.
	Line    int
	Message string
}

// String returns file:line: message.
func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message) }

// ParseError holds everything wrong with files of templates.
type ParseError struct {
	// Problems are ordered by file and line; there are at most 1,000 of a file.
	Problems []Problem
}

// Error returns one line for each problem, the first hundred of them.
func (e *ParseError) Error() string {
	const shown = 100
	var b strings.Builder
	for i, p := range e.Problems {
		if i == shown {
			fmt.Fprintf(&b, "\nand %d more problems", len(e.Problems)-shown)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.String())
	}
	return b.String()
}

func sortProblems(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.Line - b.Line })
	return slices.Compact(problems)
}
