package jsonschema

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const orderSchema = `{
  "type": "object",
  "required": ["order_id", "total"],
  "additionalProperties": false,
  "properties": {
    "order_id": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"},
    "total": {"type": "number", "minimum": 0},
    "email": {"type": "string", "format": "email"},
    "kind": {"enum": ["new", "old"]},
    "lines": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/line"}},
    "pay": {"oneOf": [{"required": ["card"]}, {"required": ["iban"]}]}
  },
  "$defs": {"line": {"type": "object", "required": ["sku"], "properties": {"sku": {"type": "string", "maxLength": 3}}}}
}`

func TestValidateNamesEveryPlaceAndNoValue(t *testing.T) {
	t.Parallel()
	s, err := Compile([]byte(orderSchema))
	require.NoError(t, err)
	for document, want := range map[string]string{
		`{"order_id": "AB-1", "total": 1.50, "lines": [{"sku": "x"}]}`: "",
		`{"order_id": "AB-1"}`:                 `lacks "total"`,
		`[]`:                                   `must be object, not array`,
		`{"order_id": "hunter2", "total": -1}`: `/order_id: must match the pattern "^[A-Z]{2}-[0-9]+$"; /total: must be at least 0`,
		`{"order_id": "AB-1", "total": 1, "email": "hunter2"}`:            `/email: must have the format email`,
		`{"order_id": "AB-1", "total": 1, "kind": "hunter2"}`:             `/kind: must be one of "new", "old"`,
		`{"order_id": "AB-1", "total": 1, "lines": [{"sku": 12}]}`:        `/lines/0/sku: must be string, not number`,
		`{"order_id": "AB-1", "total": 1, "lines": [{"sku": "hunter2"}]}`: `/lines/0/sku: must have at most 3 characters, has 7`,
		`{"order_id": "AB-1", "total": 1, "lines": []}`:                   `/lines: must have at least 1 items, has 0`,
		`{"order_id": "AB-1", "total": 1, "pay": {}}`:                     `/pay: must fit exactly one of the alternatives of oneOf`,
		`{"order_id": "AB-1", "total": 1, "note": "hunter2"}`:             `has unknown properties: "note"`,
		`{"order_id": "AB-1", "total": 1e999999999}`:                      `/total: has a number out of range`,
		`{"order_id": "AB-1", "total": 1} {}`:                             `not a single JSON document`,
	} {
		err := s.Validate([]byte(document))
		if want == "" {
			require.NoError(t, err, document)
			continue
		}
		require.EqualError(t, err, want, document)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestCompileRefusesBadSchemas(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`[]`:                 "a schema is an object, not an array",
		`{"type": "objekt"}`: `/type: must be array, boolean`,
		`{"properties": {"a": {"minLength": -1}}}`: `/properties/a/minLength: must be at least 0`,
		`{"$ref": "http://example.com/s.json"}`:    `not loaded`,
		`{"$ref": "file:///etc/passwd"}`:           `not loaded`,
		`{"$ref": "#/$defs/none"}`:                 `does not exist`,
		`{"$ref": "#none"}`:                        `does not exist`,
		`{"pattern": "("}`:                         `pattern`,
		`{"$schema": "http://example.com/own"}`:    `not loaded`,
		`{`:                                        "reading the schema as JSON",
	} {
		_, err := Compile([]byte(schema))
		require.ErrorContains(t, err, want, schema)
	}
}

func TestReferencesThatLoopEnd(t *testing.T) {
	t.Parallel()
	s, err := Compile([]byte(`{"$ref": "#"}`))
	if err == nil {
		require.Error(t, s.Validate([]byte(`{}`)))
	}
}

func TestManyProblemsAreCut(t *testing.T) {
	t.Parallel()
	s, err := Compile([]byte(`{"items": {"type": "string"}}`))
	require.NoError(t, err)
	err = s.Validate([]byte("[" + strings.Repeat("1,", 99) + "1]"))
	require.ErrorContains(t, err, "and 81 more problems")
}
