package messaging_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/jsonschema"
	"github.com/pawl-dev/pawl/messaging"
)

// schemaDoc is as much of a schema as is compared with a struct.
type schemaDoc struct {
	Schema               string               `json:"$schema"`
	Type                 any                  `json:"type"`
	Description          string               `json:"description"`
	AdditionalProperties any                  `json:"additionalProperties"`
	Required             []string             `json:"required"`
	Properties           map[string]schemaDoc `json:"properties"`
}

func TestSchemasHaveTheFieldsOfTheStructs(t *testing.T) {
	t.Parallel()
	names := make([]string, 0, len(kinds))
	for _, k := range kinds {
		names = append(names, k.schema)
		text, err := messaging.Schema(k.schema)
		require.NoError(t, err)
		var doc schemaDoc
		require.NoError(t, json.Unmarshal(text, &doc))
		require.Equal(t, "https://json-schema.org/draft/2020-12/schema", doc.Schema)
		requireSameFields(t, k.schema, doc, reflect.TypeOf(k.example))
	}
	slices.Sort(names)
	require.Equal(t, names, messaging.SchemaNames())
	_, err := messaging.Schema("task_requests")
	require.ErrorContains(t, err, `did you mean "task_request"?`)
}

func requireSameFields(t *testing.T, path string, doc schemaDoc, body reflect.Type) {
	t.Helper()
	require.Equal(t, false, doc.AdditionalProperties, path)
	require.NotEmpty(t, doc.Description, path)
	var required []string
	seen := make(map[string]bool)
	for i := range body.NumField() {
		field := body.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		mark := field.Tag.Get("body")
		seen[name] = true
		property, ok := doc.Properties[name]
		require.True(t, ok, "%s: no property %s", path, name)
		require.NotEmpty(t, property.Description, "%s.%s", path, name)
		if options == "" && mark != "true" {
			required = append(required, name)
		}
		types, _ := property.Type.([]any)
		if property.Type != nil { // without a type anything goes, null included
			require.Equal(t, mark == "nullable", slices.Contains(types, any("null")), "%s.%s may be null", path, name)
		}
		if field.Type == reflect.TypeFor[*messaging.StepError]() {
			requireSameFields(t, path+"."+name, property, field.Type.Elem())
		}
	}
	for name := range doc.Properties {
		require.True(t, seen[name], "%s: property %s is in no struct", path, name)
	}
	require.ElementsMatch(t, required, doc.Required, path)
}

func TestSchemasAndDecodersAgree(t *testing.T) {
	t.Parallel()
	for _, k := range kinds {
		text, err := messaging.Schema(k.schema)
		require.NoError(t, err)
		schema, err := jsonschema.Compile(text)
		require.NoError(t, err, k.schema)
		for _, body := range k.good {
			require.NoError(t, schema.Validate([]byte(body)), body)
		}
		for body := range k.bad {
			require.Error(t, schema.Validate([]byte(body)), body)
		}
		for _, body := range append(noBodies, `{"v":2}`) {
			require.Error(t, schema.Validate([]byte(body)), body)
		}
	}
}
