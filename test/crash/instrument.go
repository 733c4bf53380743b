package crash

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/pawl-dev/pawl/sql"
)

// Function is the test build of one function.
type Function struct {
	Name   string
	Text   string
	Points int
}

// skippedFunctions make queues and their functions: they run when a template is registered, long before any task.
var skippedFunctions = map[string]bool{"write_queue_functions": true, "install_queue": true, "now": true}

// pure functions write nothing, so a crash in them is one of their caller's.
var pure = regexp.MustCompile(`(?m)^(returns .*)?language plpgsql.*\b(stable|immutable)\b|\) returns .* language plpgsql (stable|immutable)`)

// Functions makes the test build of every function that writes.
func Functions() ([]Function, error) {
	names, err := fs.Glob(sql.Files, "functions/*.sql")
	if err != nil {
		return nil, err
	}
	var built []Function
	for _, name := range names {
		text, err := fs.ReadFile(sql.Files, name)
		if err != nil {
			return nil, err
		}
		f := Function{Name: strings.TrimSuffix(path.Base(name), ".sql")}
		source := string(text)
		if skippedFunctions[f.Name] || !strings.Contains(source, "language plpgsql") || pure.MatchString(source) {
			continue
		}
		if f.Text, f.Points, err = instrument(f.Name, source); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		built = append(built, f)
	}
	return built, nil
}

var body = regexp.MustCompile(`(?s)^(.*? as \$\$\n)(.*)(\$\$;?\s*)$`)

// instrument puts a point after every statement of a function's body. ASSERT touches neither FOUND nor the row count.
func instrument(name, source string) (string, int, error) {
	parts := body.FindStringSubmatch(source)
	if parts == nil {
		return "", 0, errors.New("no body between $$ and $$ at its end")
	}
	var out strings.Builder
	out.WriteString(parts[1])
	points := 0
	point := func() {
		points++
		fmt.Fprintf(&out, " assert pawl_test.point('%s', %d);", name, points)
	}
	s := scanner{text: parts[2]}
	started := false
	begin := 0 // of the present statement
	for s.next() {
		if !started {
			if s.word == "begin" {
				started = true
				out.WriteString(parts[2][:s.at])
				point()
				begin = s.at
			}
			continue
		}
		switch {
		case s.word == "declare":
			return "", 0, errors.New("a nested declare is not understood")
		case s.opens():
			out.WriteString(parts[2][begin:s.at])
			begin = s.at
		case s.word == ";":
			statement := parts[2][begin:s.at]
			out.WriteString(statement)
			begin = s.at
			if !ends(statement) {
				point()
			}
		}
	}
	if !started {
		return "", 0, errors.New("no begin")
	}
	out.WriteString(parts[2][begin:])
	out.WriteString(parts[3])
	return out.String(), points, nil
}

// unreachable follows these statements, and nothing has happened after the end of a block that had not before.
var unreachable = regexp.MustCompile(`(?is)^\s*(--[^\n]*\n\s*)*(return\s*;|return\s+[^q]|raise\s|end\b|(exit|continue)\s*(;|$)|null\s*;)`)

func ends(statement string) bool {
	if regexp.MustCompile(`(?is)^\s*return\s+(query|next)\b`).MatchString(statement) {
		return false
	}
	return unreachable.MatchString(statement)
}

// scanner splits PL/pgSQL into words and semicolons outside of parentheses, strings and comments.
type scanner struct {
	text  string
	at    int // behind the word
	depth int
	word  string
	prev  string // word before
	cases int    // open CASE expressions or statements
}

var token = regexp.MustCompile(`(?is)^(--[^\n]*|'(?:[^']|'')*'|\$(\w*)\$|"[^"]*"|\w+|[();]|.)`)

func (s *scanner) next() bool {
	for s.at < len(s.text) {
		t := token.FindString(s.text[s.at:])
		if strings.HasPrefix(t, "$") && strings.HasSuffix(t, "$") && len(t) > 1 { // a quoted text, up to the same tag
			if end := strings.Index(s.text[s.at+len(t):], t); end >= 0 {
				s.at += 2*len(t) + end
				continue
			}
		}
		s.at += len(t)
		switch word := strings.ToLower(t); word {
		case "(":
			s.depth++
		case ")":
			s.depth--
		case "case":
			if s.word != "end of case" { // END CASE closes a statement
				s.cases++
			}
			s.prev, s.word = s.word, word
		case "end":
			if s.cases > 0 {
				s.cases--
				s.prev, s.word = s.word, "end of case"
				continue
			}
			s.prev, s.word = s.word, word
		default:
			if s.depth > 0 || strings.TrimSpace(word) == "" || strings.HasPrefix(word, "--") || strings.HasPrefix(word, "'") {
				continue
			}
			s.prev, s.word = s.word, word
			return true
		}
	}
	return false
}

// opens tells whether the word begins a list of statements.
func (s *scanner) opens() bool {
	switch s.word {
	case "then", "else":
		return s.cases == 0
	case "loop":
		return s.prev != "end"
	case "begin":
		return true
	}
	return false
}
