package strictjson

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// shape is what a struct's tags say of the JSON object it stands for. The tag
// json gives the name, and with omitempty or omitzero the field is optional. The
// tag body adds to it: "nullable" for a field that may be null, "empty" for a
// string that may be empty, "true" for a bool that is optional and then true.
type shape struct {
	names  []string // in the order of the struct
	byName map[string]shapeField
}

type shapeField struct {
	index    []int
	required bool
	nullable bool
	anyJSON  bool
	empty    bool
	initial  bool
	wants    string
}

var shapes sync.Map // reflect.Type → shape

func shapeOf(t reflect.Type) shape {
	if known, ok := shapes.Load(t); ok {
		return known.(shape)
	}
	s := shape{byName: make(map[string]shapeField, t.NumField())}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		mark := field.Tag.Get("body")
		anyJSON := field.Type == reflect.TypeFor[json.RawMessage]()
		s.names = append(s.names, name)
		s.byName[name] = shapeField{
			index:    field.Index,
			required: options == "" && mark != "true",
			nullable: mark == "nullable" || anyJSON,
			anyJSON:  anyJSON,
			empty:    mark == "empty",
			initial:  mark == "true",
			wants:    wants(field.Type),
		}
	}
	shapes.Store(t, s)
	return s
}

// wants says in words what JSON a Go type is read from.
func wants(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[uuid.UUID]():
		return "a UUID such as 018f3c2e-7b1a-7c3d-9e4f-5a6b7c8d9e0f"
	case reflect.TypeFor[time.Time]():
		return "a time with its zone such as 2026-01-31T12:00:00Z"
	case reflect.TypeFor[json.RawMessage]():
		return "any JSON value"
	case reflect.TypeFor[map[string]string]():
		return "an object of strings"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string that is not empty"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Pointer:
		return wants(t.Elem())
	case reflect.Slice:
		return "a list"
	default:
		return "an object"
	}
}
