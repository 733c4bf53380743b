package messaging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/google/uuid"
)

// decode reads a JSON object into the struct that body points to. Unlike
// encoding/json it minds the case of names, refuses unknown and missing fields
// and null, and speaks of what it found without quoting it.
func decode(what string, text []byte, body any) error {
	fields, err := object(text)
	if err != nil {
		return &BodyError{Body: what, Reason: err.Error()}
	}
	if err := checkVersion(what, fields); err != nil {
		return err
	}
	d := decoder{what: what}
	if err := d.fill("", fields, reflect.ValueOf(body).Elem()); err != nil {
		return err
	}
	v := reflect.ValueOf(body).Elem().FieldByName("V")
	if v.Int() == 0 {
		v.SetInt(1)
	}
	return nil
}

func object(text []byte) (map[string]json.RawMessage, error) {
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return nil, errors.New("not a JSON object")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, errors.New("not valid JSON")
	}
	return fields, nil
}

// checkVersion comes before everything else: what a newer version means by a
// field is not for us to judge.
func checkVersion(what string, fields map[string]json.RawMessage) error {
	raw, ok := fields["v"]
	if !ok {
		return nil
	}
	var number json.Number
	if len(raw) > 0 && raw[0] != '"' {
		_ = json.Unmarshal(raw, &number) // what is no number stays empty
	}
	version, err := number.Int64()
	whole := number != "" && strings.Trim(number.String(), "0123456789") == ""
	switch {
	case whole && err != nil: // out of range
		version = math.MaxInt
	case !whole || version < 1:
		return &BodyError{Body: what, Field: "v", Reason: "must be a whole number, 1 or more"}
	}
	if version > Version {
		return &NewerVersionError{Body: what, Version: int(version)}
	}
	return nil
}

type decoder struct{ what string }

func (d decoder) wrong(field, format string, args ...any) error {
	return &BodyError{Body: d.what, Field: field, Reason: fmt.Sprintf(format, args...)}
}

// fill sets the fields of a struct. prefix is the path to it.
func (d decoder) fill(prefix string, fields map[string]json.RawMessage, into reflect.Value) error {
	shape := shapeOf(into.Type())
	for name := range fields {
		if _, ok := shape.byName[name]; !ok {
			return d.wrong(prefix+cut(name), "is unknown%s Allowed: %s", orPoint(Suggestion(name, shape.names)), strings.Join(shape.names, ", "))
		}
	}
	for _, name := range shape.names {
		field := shape.byName[name]
		raw, ok := fields[name]
		switch {
		case !ok && field.required:
			return d.wrong(prefix+name, "is missing: write %s", field.wants)
		case !ok:
			continue
		case isNull(raw) && field.nullable:
			// A null is a value where any JSON is one, else as good as absent.
			if field.anyJSON {
				into.FieldByIndex(field.index).SetBytes(raw)
			}
			continue
		case isNull(raw):
			return d.wrong(prefix+name, "is null: write %s%s", field.wants, orElse(field.required, "", ", or leave it out"))
		}
		target := into.FieldByIndex(field.index)
		if err := d.set(prefix+name, raw, target); err != nil {
			return err
		}
		if target.Kind() == reflect.String && target.Len() == 0 && !field.empty {
			return d.wrong(prefix+name, "is empty: write %s%s", field.wants, orElse(field.required, "", ", or leave it out"))
		}
	}
	return nil
}

// set sets one field from a value that is not null.
func (d decoder) set(name string, raw json.RawMessage, into reflect.Value) error {
	switch target := into.Addr().Interface().(type) {
	case *json.RawMessage:
		*target = raw
		return nil
	case **StepError:
		*target = new(StepError)
		(*target).setDefaults()
		fields, err := object(raw)
		if err != nil {
			return d.wrong(name, "%s", err)
		}
		return d.fill(name+".", fields, reflect.ValueOf(*target).Elem())
	case *uuid.UUID:
		// Its other spellings are not those that SQL gives back.
		if len(raw) == 38 && json.Unmarshal(raw, target) == nil && *target != uuid.Nil {
			return nil
		}
	default:
		if json.Unmarshal(raw, target) == nil {
			return nil
		}
	}
	return d.wrong(name, "must be %s", wants(into.Type()))
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// cut keeps what somebody else wrote from filling an error.
func cut(name string) string {
	if len(name) > 60 {
		return strings.ToValidUTF8(name[:60], "") + "…"
	}
	return name
}

func orPoint(suggestion string) string { return orElse(suggestion == "", ".", suggestion) }

func orElse(condition bool, then, otherwise string) string {
	if condition {
		return then
	}
	return otherwise
}
