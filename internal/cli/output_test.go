package cli

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJSONForPeopleIsAsItWasWritten(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"id": 9007199254740993, "pi": 1.10}`: "{\n    \"id\": 9007199254740993,\n    \"pi\": 1.10\n  }",
		`[ "<b> & \u2028", {}, 1e400 ]`:        "[\n    \"<b> & \\u2028\",\n    {},\n    1e400\n  ]",
		``:                                     "-",
		`no`:                                   "no",
		`"x"`:                                  `"x"`,
	} {
		require.Equal(t, want, indented(json.RawMessage(raw), "  "), raw)
	}
}
