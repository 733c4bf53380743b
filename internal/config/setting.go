package config

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/workflow"
)

// Setting is one field of a settings struct.
type Setting struct {
	Key     string // in the file, dotted
	Default string
	Unit    string // of a number; empty for texts, switches and durations, which carry theirs
	Doc     string
	Secret  bool // never a flag: others see a process's arguments
	Zero    bool // a duration may be 0; to all others it would be as if nothing was said

	kind  reflect.Type
	value reflect.Value
}

// Env is the setting's environment variable.
func (s Setting) Env() string {
	return "PAWL_" + strings.ToUpper(strings.ReplaceAll(s.short(), ".", "_"))
}

// Flag is the setting's flag, without the dashes; "" for a secret.
func (s Setting) Flag() string {
	if s.Secret {
		return ""
	}
	return strings.NewReplacer("_", "-", ".", "-").Replace(s.short())
}

// short is the key without the name of its binary, which flags and variables need not repeat.
func (s Setting) short() string {
	for _, binary := range []string{"orchestrator.", "worker."} {
		if short, ok := strings.CutPrefix(s.Key, binary); ok {
			return short
		}
	}
	return s.Key
}

// Settings lists the fields of a settings struct, given as a pointer.
func Settings(target any) []Setting {
	value := reflect.ValueOf(target).Elem()
	var all []Setting
	for i := range value.NumField() {
		field := value.Type().Field(i)
		key := field.Tag.Get("key")
		if key == "" {
			continue
		}
		all = append(all, Setting{
			Key: key, Default: field.Tag.Get("default"), Unit: field.Tag.Get("unit"), Doc: field.Tag.Get("doc"),
			Secret: field.Tag.Get("secret") == "true", Zero: field.Tag.Get("zero") == "true", kind: field.Type, value: value.Field(i),
		})
	}
	return all
}

var durationType = reflect.TypeFor[time.Duration]()

// setText sets the field from a flag, a variable or a default.
func (s Setting) setText(text string) error {
	switch {
	case s.kind == durationType:
		d, err := workflow.ParseDuration(text)
		if err == nil && d == 0 && !s.Zero {
			err = errors.New("write a duration of more than 0, as 30s or 5m")
		}
		if err != nil {
			return err
		}
		s.value.SetInt(int64(d))
	case s.kind.Kind() == reflect.String:
		s.value.SetString(text)
	case s.kind.Kind() == reflect.Bool:
		on, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("write true or false")
		}
		s.value.SetBool(on)
	case s.kind.Kind() == reflect.Slice:
		var list []string
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
		s.value.Set(reflect.ValueOf(list))
	default:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return errors.New("write a whole number")
		}
		return s.setNumber(n)
	}
	return nil
}

// setNumber refuses what no setting means: all of them count something there is at least one of.
func (s Setting) setNumber(n int64) error {
	if n < 1 || s.value.OverflowInt(n) {
		return errors.New("write a number of 1 or more")
	}
	s.value.SetInt(n)
	return nil
}

// setTOML sets the field from a value of a file.
func (s Setting) setTOML(value any) error {
	switch v := value.(type) {
	case string:
		if s.kind.Kind() == reflect.String || s.kind == durationType {
			return s.setText(v)
		}
	case bool:
		if s.kind.Kind() == reflect.Bool {
			s.value.SetBool(v)
			return nil
		}
	case int64:
		if s.kind != durationType && (s.kind.Kind() == reflect.Int || s.kind.Kind() == reflect.Int64) {
			return s.setNumber(v)
		}
	case []any:
		if s.kind.Kind() == reflect.Slice {
			list := make([]string, len(v))
			for i, element := range v {
				text, ok := element.(string)
				if !ok {
					return errors.New(`write a list of texts, as in ["a", "b"]`)
				}
				list[i] = text
			}
			s.value.Set(reflect.ValueOf(list))
			return nil
		}
	}
	return fmt.Errorf("write %s", s.wants())
}

// word for the setting's value in the help.
func (s Setting) word() string {
	switch {
	case s.kind == durationType:
		return "duration"
	case s.kind.Kind() == reflect.String:
		return "text"
	case s.kind.Kind() == reflect.Slice:
		return "list"
	}
	return "number"
}

// wants says how a file writes the setting.
func (s Setting) wants() string {
	switch {
	case s.kind == durationType:
		return `a duration in quotes, as in "30s"`
	case s.kind.Kind() == reflect.String:
		return "a text in quotes"
	case s.kind.Kind() == reflect.Bool:
		return "true or false"
	case s.kind.Kind() == reflect.Slice:
		return `a list of texts, as in ["a", "b"]`
	}
	return "a whole number"
}
