package doctor

import (
	"embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed checks/*.sql
var files embed.FS

// Kind says when an invariant holds.
type Kind string

// Kinds of invariants.
const (
	Always Kind = "always" // in each snapshot, also while processes die
	AtRest Kind = "rest"   // when nothing has happened for longer than the grace
	Advice Kind = "advice" // a healthy server; failing it fails nothing
)

// Check is one invariant.
type Check struct {
	ID    string `json:"id"`
	Kind  Kind   `json:"kind"`
	Says  string `json:"says"`
	query string // subject and finding of each violation; may use messages and :grace
}

var heading = regexp.MustCompile(`^-- ([A-H]\d+) (always|rest|advice): (.+)$`)

// Checks returns all invariants in the order of their ids.
func Checks() ([]Check, error) {
	names, err := files.ReadDir("checks")
	if err != nil {
		return nil, fmt.Errorf("listing the checks: %w", err)
	}
	var all []Check
	for _, entry := range names {
		text, err := files.ReadFile(path.Join("checks", entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the checks of %s: %w", entry.Name(), err)
		}
		found, err := parse(string(text))
		if err != nil {
			return nil, fmt.Errorf("reading the checks of %s: %w", entry.Name(), err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// parse splits a file: each check is a heading, comments, and a query up to a line that ends with a semicolon.
func parse(text string) ([]Check, error) {
	var all []Check
	var open bool
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if h := heading.FindStringSubmatch(line); h != nil {
			if open || slices.ContainsFunc(all, func(c Check) bool { return c.ID == h[1] }) {
				return nil, fmt.Errorf("check %s begins before the one above ends, or is there twice", h[1])
			}
			all, open = append(all, Check{ID: h[1], Kind: Kind(h[2]), Says: h[3]}), true
			continue
		}
		if !open || strings.HasPrefix(line, "--") {
			continue
		}
		last := &all[len(all)-1]
		last.query += line + "\n"
		if strings.HasSuffix(line, ";") {
			last.query = strings.TrimSuffix(strings.TrimSpace(last.query), ";")
			open = false
		}
	}
	if open {
		return nil, fmt.Errorf("check %s has no end", all[len(all)-1].ID)
	}
	return all, nil
}
