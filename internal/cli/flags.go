package cli

import (
	"bytes"
	"encoding/json"
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
