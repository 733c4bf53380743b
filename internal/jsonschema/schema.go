package jsonschema

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	js "github.com/santhosh-tekuri/jsonschema/v6"
)

// location names the schema inside the compiler; no loader ever sees it.
const location = "pawl:///schema"

// Schema is a compiled schema. It may be used by several goroutines at once.
type Schema struct {
	compiled *js.Schema
}

// noLoader refuses every reference that leaves the document. The meta-schemas
// of the drafts are built into the library and are not asked for here.
type noLoader struct{}

// Load always fails.
func (noLoader) Load(string) (any, error) {
	return nil, errors.New("a schema may only refer to itself; copy what it needs into $defs")
}

// Compile compiles a schema given as JSON. Without $schema it is read as draft
// 2020-12. The error is an [*Error] when the schema itself is at fault.
func Compile(schema []byte) (*Schema, error) {
	doc, err := js.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("reading the schema as JSON: %w", err)
	}
	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, oneProblem("a schema is an object, not " + typeName(doc))
	}
	c := js.NewCompiler()
	c.UseLoader(noLoader{})
	c.AssertFormat()
	if err := c.AddResource(location, doc); err != nil {
		return nil, compileError(err)
	}
	compiled, err := c.Compile(location)
	if err != nil {
		return nil, compileError(err)
	}
	return &Schema{compiled: compiled}, nil
}

// Validate checks a JSON document. The error is an [*Error] that names every
// place where the document does not fit.
func (s *Schema) Validate(document []byte) error {
	doc, err := js.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return oneProblem("not a single JSON document")
	}
	if p, ok := checkNumbers(doc, nil); !ok {
		return &Error{Problems: []Problem{p}}
	}
	err = s.compiled.Validate(doc)
	if err == nil {
		return nil
	}
	var invalid *js.ValidationError
	if errors.As(err, &invalid) {
		return &Error{Problems: leaves(invalid)}
	}
	return fmt.Errorf("validating a document: %w", err)
}

func compileError(err error) error {
	var (
		invalid *js.SchemaValidationError
		meta    *js.ValidationError
		load    *js.LoadURLError
		pointer *js.JSONPointerNotFoundError
		anchor  *js.AnchorNotFoundError
	)
	switch {
	case errors.As(err, &invalid) && errors.As(invalid.Err, &meta):
		problems := leaves(meta)
		for i, p := range problems {
			if n := len(p.Path); n > 0 && p.Path[n-1] == "type" {
				problems[i].Message = "must be array, boolean, integer, null, number, object or string, or a list of these"
			}
		}
		return &Error{Problems: problems}
	case errors.As(err, &load):
		return oneProblem(fmt.Sprintf("refers to %q, which is not loaded: %v", load.URL, load.Err))
	case errors.As(err, &pointer):
		return oneProblem(fmt.Sprintf("refers to %q, which does not exist", strings.TrimPrefix(pointer.URL, location)))
	case errors.As(err, &anchor):
		return oneProblem(fmt.Sprintf("refers to %q, which does not exist", strings.TrimPrefix(anchor.Reference, location)))
	}
	return oneProblem(strings.ReplaceAll(err.Error(), location, ""))
}
