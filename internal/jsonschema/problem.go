package jsonschema

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	js "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxProblems bounds what one document can make us write.
const maxProblems = 20

// maxExponent bounds numbers: the library computes with exact fractions, which
// 1e999999999 would fill the memory with.
const maxExponent = 1000

// Problem is one place where a document does not fit its schema.
type Problem struct {
	// Path leads to the place, from the root of the document.
	Path []string
	// Message says what the schema wants. It never repeats a value of the document.
	Message string
}

// String returns the path as a JSON pointer and the message.
func (p Problem) String() string {
	var b strings.Builder
	for _, part := range p.Path {
		b.WriteString("/" + shorten(part))
	}
	if b.Len() == 0 {
		return p.Message
	}
	return b.String() + ": " + p.Message
}

// Error is a document that does not fit its schema, or a schema that does not
// fit its draft's.
type Error struct {
	// Problems are ordered by path; there are at most 20.
	Problems []Problem
}

// Error returns all problems, separated by semicolons.
func (e *Error) Error() string {
	all := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		all[i] = p.String()
	}
	return strings.Join(all, "; ")
}

func oneProblem(message string) error {
	return &Error{Problems: []Problem{{Message: message}}}
}

// leaves collects the innermost errors: the outer ones only say that there are inner ones.
func leaves(err *js.ValidationError) []Problem {
	var all []Problem
	var walk func(*js.ValidationError)
	walk = func(e *js.ValidationError) {
		switch e.ErrorKind.(type) {
		case *kind.AnyOf, *kind.OneOf, *kind.Not, *kind.Contains:
			// The branches contradict each other: name the choice, not every branch.
			all = append(all, Problem{Path: e.InstanceLocation, Message: message(e.ErrorKind)})
			return
		}
		if len(e.Causes) == 0 {
			all = append(all, Problem{Path: e.InstanceLocation, Message: message(e.ErrorKind)})
		}
		for _, cause := range e.Causes {
			walk(cause)
		}
	}
	walk(err)
	slices.SortFunc(all, func(a, b Problem) int {
		if c := slices.Compare(a.Path, b.Path); c != 0 {
			return c
		}
		return strings.Compare(a.Message, b.Message)
	})
	all = slices.CompactFunc(all, func(a, b Problem) bool { return a.String() == b.String() })
	if len(all) > maxProblems {
		more := len(all) - maxProblems + 1
		all = append(all[:maxProblems-1:maxProblems-1], Problem{Message: fmt.Sprintf("and %d more problems", more)})
	}
	return all
}

// message words a failed keyword without the value that failed it.
func message(k js.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return fmt.Sprintf("must be %s, not %s", strings.Join(k.Want, " or "), k.Got)
	case *kind.Required:
		return "lacks " + quoted(k.Missing)
	case *kind.AdditionalProperties:
		return "has unknown properties: " + quoted(k.Properties)
	case *kind.Enum:
		return "must be one of " + values(k.Want)
	case *kind.Const:
		return "must be " + values([]any{k.Want})
	case *kind.Format:
		return "must have the format " + k.Want
	case *kind.Pattern:
		return "must match the pattern " + strconv.Quote(k.Want)
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + number(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + number(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + number(k.Want)
	}
	return sizeMessage(k)
}

func sizeMessage(k js.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters, has %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters, has %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items, has %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items, has %d", k.Want, k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d properties, has %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d properties, has %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.AnyOf:
		return "fits none of the alternatives of anyOf"
	case *kind.OneOf:
		return "must fit exactly one of the alternatives of oneOf"
	case *kind.Not:
		return "is what the schema excludes with not"
	case *kind.FalseSchema:
		return "is not allowed here"
	}
	path := k.KeywordPath()
	if len(path) == 0 {
		return "does not fit the schema"
	}
	return "does not fit the schema's " + path[len(path)-1]
}

// checkNumbers refuses literals that exact arithmetic cannot carry.
func checkNumbers(v any, path []string) (Problem, bool) {
	switch v := v.(type) {
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(v.String()), "e")
		e, err := strconv.Atoi(strings.TrimPrefix(exponent, "+"))
		if exponent != "" && (err != nil || e > maxExponent || e < -maxExponent) {
			return Problem{Path: slices.Clone(path), Message: "has a number out of range"}, false
		}
	case []any:
		for i, item := range v {
			if p, ok := checkNumbers(item, append(path, strconv.Itoa(i))); !ok {
				return p, false
			}
		}
	case map[string]any:
		for key, item := range v {
			if p, ok := checkNumbers(item, append(path, key)); !ok {
				return p, false
			}
		}
	}
	return Problem{}, true
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

func quoted(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	more := ""
	if len(names) > 10 {
		more = fmt.Sprintf(" and %d more", len(names)-10)
		names = names[:10]
	}
	for i, name := range names {
		names[i] = strconv.Quote(shorten(name))
	}
	return strings.Join(names, ", ") + more
}

// values words what the schema, not the document, gives.
func values(want []any) string {
	all := make([]string, len(want))
	for i, v := range want {
		b, err := json.Marshal(v)
		if err != nil {
			return "the values the schema names"
		}
		all[i] = string(b)
	}
	return shorten(strings.Join(all, ", "))
}

func number(r *big.Rat) string {
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func shorten(s string) string {
	const longest = 200
	if r := []rune(s); len(r) > longest {
		return string(r[:longest]) + "…"
	}
	return s
}
