package workflow

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-dev/pawl/internal/nearest"
)

var (
	namePattern    = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
	versionPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	handlerPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,127}$`)
	queuePattern   = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)
)

// decoder reads the nodes of one file. It notes every problem and goes on, so
// that an author sees all of them at once; a value that was refused is zero.
type decoder struct {
	file     string
	problems []Problem
	// jsonNodes is what is left of the values that config and schemas may hold;
	// aliases could otherwise blow a small file up.
	jsonNodes int
	// guesses is how many more misspelt names get a suggestion, which is quadratic work.
	guesses int
}

func newDecoder(file string) *decoder {
	return &decoder{file: file, jsonNodes: 1_000_000, guesses: 50}
}

func (d *decoder) fail(n *yaml.Node, format string, args ...any) {
	d.failAt(n.Line, format, args...)
}

func (d *decoder) failAt(line int, format string, args ...any) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, Problem{File: d.file, Line: line, Message: fmt.Sprintf(format, args...)})
	}
}

// suggest words a hint at the name that was probably meant.
func (d *decoder) suggest(name string, candidates []string) string {
	if d.guesses == 0 {
		return ""
	}
	d.guesses--
	if near := nearest.Name(name, candidates); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

// entry is one key of a mapping with its value, aliases resolved.
type entry struct {
	key   string
	at    *yaml.Node
	value *yaml.Node
}

// entries lists a mapping. Keys that are not text, appear twice or have no
// value are noted and left out.
func (d *decoder) entries(n *yaml.Node, what string) []entry {
	if n.Kind != yaml.MappingNode {
		d.fail(n, "%s must be a mapping, not %s", what, kindOf(n))
		return nil
	}
	all := make([]entry, 0, len(n.Content)/2)
	seen := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), resolve(n.Content[i+1])
		switch {
		case key.ShortTag() == "!!merge":
			d.fail(key, "%s: merge keys (<<) are not supported; write the fields out", what)
		case key.ShortTag() != "!!str":
			d.fail(key, "%s: a key must be text, not %s", what, kindOf(key))
		case seen[key.Value] != 0:
			d.fail(key, "%s: %s is given twice, first in line %d", what, quote(key.Value), seen[key.Value])
		case isNull(value):
			seen[key.Value] = key.Line
			d.fail(key, "%s: %s has no value; give one or leave it out", what, quote(key.Value))
		default:
			seen[key.Value] = key.Line
			all = append(all, entry{key.Value, key, value})
		}
	}
	return all
}

// notYet are fields that are meant to come, and that nobody should take for misspelt ones.
var notYet = map[string]string{"when": "conditions", "for_each": "steps for each element of a list", "cron": "schedules", "schedule": "schedules"}

// fields lists a mapping whose keys are known beforehand. Unknown ones are noted.
func (d *decoder) fields(n *yaml.Node, what string, known []string) map[string]*yaml.Node {
	m := make(map[string]*yaml.Node, len(n.Content)/2)
	for _, e := range d.entries(n, what) {
		if later := notYet[e.key]; later != "" {
			d.fail(e.at, "%s has no field %s: %s are not built yet", what, quote(e.key), later)
			continue
		}
		if !slices.Contains(known, e.key) {
			d.fail(e.at, "%s has no field %s%s", what, quote(e.key), d.suggest(e.key, known))
			continue
		}
		m[e.key] = e.value
	}
	return m
}

// items lists a sequence, aliases resolved.
func (d *decoder) items(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, "%s must be a list, not %s", what, kindOf(n))
		return nil
	}
	all := make([]*yaml.Node, len(n.Content))
	for i, item := range n.Content {
		all[i] = resolve(item)
	}
	return all
}

func (d *decoder) text(n *yaml.Node, what string, longest int) string {
	switch {
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str":
		d.fail(n, "%s must be text, not %s", what, kindOf(n))
	case strings.ContainsRune(n.Value, 0):
		d.fail(n, "%s must not contain the character U+0000", what)
	case n.Value == "":
		d.fail(n, "%s is empty", what)
	case len(n.Value) > longest:
		d.fail(n, "%s has %d bytes; at most %d", what, len(n.Value), longest)
	default:
		return n.Value
	}
	return ""
}

// matching reads text of a pattern, which rule puts in words.
func (d *decoder) matching(n *yaml.Node, what string, pattern *regexp.Regexp, rule string) string {
	s := d.text(n, what, 1024)
	if s != "" && !pattern.MatchString(s) {
		d.fail(n, "%s %s is not allowed: %s", what, quote(s), rule)
		return ""
	}
	return s
}

func (d *decoder) name(n *yaml.Node, what string) string {
	return d.matching(n, what, namePattern,
		"a name begins with a lower-case letter and has up to 63 lower-case letters, digits and underscores")
}

func (d *decoder) choice(n *yaml.Node, what string, options ...string) string {
	s := d.text(n, what, 1024)
	if s != "" && !slices.Contains(options, s) {
		d.fail(n, "%s cannot be %s; it is one of %s", what, quote(s), strings.Join(options, ", "))
		return ""
	}
	return s
}

func (d *decoder) integer(n *yaml.Node, what string, least, most int) int {
	v, err := strconv.Atoi(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" || err != nil:
		d.fail(n, "%s must be a whole number, not %s", what, kindOf(n))
	case v < least || v > most:
		d.fail(n, "%s is %d; it must be from %d to %d", what, v, least, most)
	default:
		return v
	}
	return 0
}

// fraction reads a number from 0 to 1.
func (d *decoder) fraction(n *yaml.Node, what string) float64 {
	v, err := strconv.ParseFloat(n.Value, 64)
	tag := n.ShortTag()
	switch {
	case n.Kind != yaml.ScalarNode || tag != "!!int" && tag != "!!float" || err != nil:
		d.fail(n, "%s must be a number, not %s", what, kindOf(n))
	case !(v >= 0 && v <= 1):
		d.fail(n, "%s is %s; it must be from 0 to 1", what, n.Value)
	default:
		return v
	}
	return 0
}

// duration reads a duration of at least one millisecond.
func (d *decoder) duration(n *yaml.Node, what string) time.Duration {
	v, ok := d.durationOrZero(n, what)
	if ok && v == 0 {
		d.fail(n, "%s must be longer than 0; leave it out for the default", what)
	}
	return v
}

// durationOrZero reads a duration where 0 has a meaning.
func (d *decoder) durationOrZero(n *yaml.Node, what string) (time.Duration, bool) {
	zero := n.ShortTag() == "!!int" && n.Value == "0"
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" && !zero {
		hint := ""
		if n.ShortTag() == "!!int" {
			hint = "; give its unit, like 30s"
		}
		d.fail(n, "%s must be a duration, not %s%s", what, kindOf(n), hint)
		return 0, false
	}
	v, err := ParseDuration(n.Value)
	if err != nil {
		d.fail(n, "%s: %v", what, err)
		return 0, false
	}
	return v, true
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// kindOf words what a node is.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!str":
		return "text"
	case "!!null":
		return "null"
	case "!!bool":
		return "a boolean"
	case "!!int", "!!float":
		return "the number " + shorten(n.Value)
	case "!!timestamp":
		return "a timestamp; put it in quotes"
	}
	return "a value tagged " + shorten(n.ShortTag())
}

func quote(s string) string { return strconv.Quote(shorten(s)) }

func shorten(s string) string {
	const longest = 100
	if r := []rune(s); len(r) > longest {
		return string(r[:longest]) + "…"
	}
	return s
}
