package nearest

import (
	"fmt"
	"strings"
)

// Name returns the candidate closest to a misspelt name, or "" when none is
// close enough to have been meant: more than a third of the name is different. Case
// alone is no difference.
func Name(name string, candidates []string) string {
	best, found := max(1, len(name)/3)+1, ""
	for _, candidate := range candidates {
		if strings.EqualFold(name, candidate) {
			return candidate
		}
		if apart := len(candidate) - len(name); apart >= best || -apart >= best {
			continue
		}
		if d := editDistance(name, candidate); d < best && d < len(name) {
			best, found = d, candidate
		}
	}
	return found
}

// Suggestion is `; did you mean "x"?` for the nearest candidate, to stand at the
// end of an error, or "" when none is near.
func Suggestion(name string, candidates []string) string {
	if near := Name(name, candidates); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// editDistance counts the insertions, deletions, replacements and swaps of
// neighbours that lead from a to b, in bytes.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
