package workflow

// nearest returns the candidate closest to a misspelt name, or "" when none is
// close enough to be meant.
func nearest(name string, candidates []string) string {
	limit := max(1, len(name)/3)
	best, found := min(limit+1, len(name)), ""
	for _, c := range candidates {
		if diff := len(c) - len(name); diff > limit || -diff > limit {
			continue
		}
		if d := editDistance(name, c); d < best {
			best, found = d, c
		}
	}
	return found
}

// editDistance counts the insertions, deletions and replacements between two names.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			above := row[j+1]
			row[j+1] = min(diagonal+cost, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}
