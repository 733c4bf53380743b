package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/pawl-dev/pawl/workflow"
)

// durationFlag is a duration as templates write it: 30s, 15m, 24h, 7d.
type durationFlag struct{ value *time.Duration }

func durationVar(flags *pflag.FlagSet, value *time.Duration, name, usage string) {
	flags.Var(durationFlag{value}, name, usage)
}

func (d durationFlag) Set(s string) error {
	parsed, err := workflow.ParseDuration(s)
	if err != nil {
		return err
	}
	*d.value = parsed
	return nil
}

func (d durationFlag) String() string {
	if d.value == nil || *d.value == 0 {
		return ""
	}
	return workflow.FormatDuration(*d.value)
}

func (d durationFlag) Type() string { return "duration" }

// limitFlag is a whole number, or none, which takes a limit away; nil when it is not given.
type limitFlag struct{ value **int }

func (l limitFlag) Set(s string) error {
	if s == "none" {
		s = "0"
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return errors.New("write a whole number, or none")
	}
	*l.value = &n
	return nil
}

func (l limitFlag) String() string { return "" } // there is no default

func (l limitFlag) Type() string { return "int" }

// parseJSON checks that a flag's text is one JSON value. Its content never stands in the error.
func parseJSON(flag, s string) (json.RawMessage, error) {
	if s == "" {
		return nil, usagef("%s is missing: give a JSON value, as '{}' or null", flag)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(s)); err != nil {
		return nil, usagef("%s is not JSON: %w; quote it for the shell: '{\"order_id\": \"S-1\"}'", flag, err)
	}
	return b.Bytes(), nil
}
