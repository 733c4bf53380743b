package messaging

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"

	"github.com/pawl-dev/pawl/internal/strictjson"
)

// decode reads a JSON object into the struct that body points to, strictly. The
// struct's field V ends as the version, which is 1 when the object has none.
func decode(what string, text []byte, body any) error {
	fields, err := strictjson.Object(text)
	if err == nil {
		// What a newer version means by a field is not for us to judge.
		if err := checkVersion(what, fields); err != nil {
			return err
		}
		err = strictjson.Fill(fields, body)
	}
	var wrong *strictjson.Error
	if errors.As(err, &wrong) {
		return &BodyError{Body: what, Field: wrong.Field, Reason: wrong.Reason}
	}
	reflect.ValueOf(body).Elem().FieldByName("V").SetInt(Version)
	return nil
}

// checkVersion judges the field v, if there is one.
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

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }
