package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/uuid"

	"github.com/pawl-dev/pawl/internal/nearest"
)

// Error says which field is wrong, and what to write instead.
type Error struct {
	Field  string // with its path, such as reports[2].error.type; empty: the text as a whole
	Reason string
}

// Error names field and reason.
func (e *Error) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return fmt.Sprintf("field %q: %s", e.Field, e.Reason)
}

// Object splits a JSON object into its fields. The error is an [*Error].
func Object(text []byte) (map[string]json.RawMessage, error) {
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, &Error{Reason: "not a JSON object"}
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, &Error{Reason: "not valid JSON"}
	}
	return fields, nil
}

// Fill sets the struct that into points to from the fields of an object. The
// struct's fields are strings, whole and other numbers, bools, times, UUIDs,
// json.RawMessage, maps, pointers to such structs and lists of them. The error is
// an [*Error].
func Fill(fields map[string]json.RawMessage, into any) error {
	return fill("", fields, reflect.ValueOf(into).Elem())
}

func wrong(field, format string, args ...any) error {
	return &Error{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// fill sets the fields of a struct. prefix is the path to it.
func fill(prefix string, fields map[string]json.RawMessage, into reflect.Value) error {
	shape := shapeOf(into.Type())
	for name := range fields {
		if _, ok := shape.byName[name]; !ok {
			suggestion := nearest.Suggestion(name, shape.names)
			if suggestion == "" {
				suggestion = "."
			}
			return wrong(prefix+cut(name), "is unknown%s Allowed: %s", suggestion, strings.Join(shape.names, ", "))
		}
	}
	for _, name := range shape.names {
		field := shape.byName[name]
		target := into.FieldByIndex(field.index)
		if field.initial {
			target.SetBool(true)
		}
		raw, ok := fields[name]
		switch {
		case !ok && field.required:
			return wrong(prefix+name, "is missing: write %s", field.wants)
		case !ok:
			continue
		case isNull(raw) && field.nullable:
			// A null is a value where any JSON is one, else as good as absent.
			if field.anyJSON {
				target.SetBytes(raw)
			}
			continue
		case isNull(raw):
			return wrong(prefix+name, "is null: write %s%s", field.wants, orLeaveOut(field))
		}
		if err := set(prefix+name, raw, target); err != nil {
			return err
		}
		if target.Kind() == reflect.String && target.Len() == 0 && !field.empty {
			return wrong(prefix+name, "is empty: write %s%s", field.wants, orLeaveOut(field))
		}
	}
	return nil
}

// set sets one field from a value that is not null.
func set(name string, raw json.RawMessage, into reflect.Value) error {
	t := into.Type()
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		into.SetBytes(raw)
		return nil
	case t == reflect.TypeFor[uuid.UUID]():
		id := into.Addr().Interface().(*uuid.UUID)
		// Its other spellings are not those that SQL gives back.
		if len(raw) != 38 || json.Unmarshal(raw, id) != nil || *id == uuid.Nil {
			return wrong(name, "must be %s", wants(t))
		}
		return nil
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		into.Set(reflect.New(t.Elem()))
		return setObject(name, raw, into.Elem())
	case t.Kind() == reflect.Slice:
		return setList(name, raw, into)
	}
	if json.Unmarshal(raw, into.Addr().Interface()) != nil {
		return wrong(name, "must be %s", wants(t))
	}
	return nil
}

func setObject(name string, raw json.RawMessage, into reflect.Value) error {
	fields, err := Object(raw)
	if err != nil {
		return wrong(name, "%s", err)
	}
	return fill(name+".", fields, into)
}

func setList(name string, raw json.RawMessage, into reflect.Value) error {
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		return wrong(name, "must be a list")
	}
	into.Set(reflect.MakeSlice(into.Type(), len(elements), len(elements)))
	for i, element := range elements {
		if err := setObject(fmt.Sprintf("%s[%d]", name, i), element, into.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

func orLeaveOut(field shapeField) string {
	if field.required {
		return ""
	}
	return ", or leave it out"
}

// cut keeps what somebody else wrote from filling an error.
func cut(name string) string {
	if len(name) > 60 {
		return strings.ToValidUTF8(name[:60], "") + "…"
	}
	return name
}
