package pgmq_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/messaging/pgmq"
)

var goodJSON = []string{
	`{}`, `[]`, `null`, `true`, `false`, `0`, `-0`, `1.5e+3`, `1E-2`, `""`, ` [ 1 , 2 ] `, "\t{\n\"a\" :\r{} }",
	`{"a":{"b":[1,{"c":null}]},"":[]}`, `"\"\\\/\b\f\n\r\t\u0001\uFFFE"`, `"\ud83d\ude00"`, `"🦊é"`, `{"a":1,"a":2}`,
	`[[],{},[{}]]`, "\"\x7f\"",
}

var badJSON = []string{
	``, ` `, `{`, `[`, `"`, `"\`, `"\u12`, `}`, `]`, `,`, `{]`, `[}`, `[1,]`, `[,1]`, `{,}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{1:2}`,
	`{"a" 1}`, `[1 2]`, `1 2`, `01`, `-`, `+1`, `1.`, `.5`, `1e`, `1e+`, `tru`, `nul`, `True`, `NaN`, `Infinity`, `'a'`, `"\x"`,
	`"\u00g0"`, `"\u+123"`, `"\u1_23"`, "\"\n\"", "\"\x00\"", "\x00", "\xff", "\"\xff\"", "\"\xed\xa0\x80\"", "\xef\xbb\xbf1",
	`// a`, `"\u0000"`, `{"\u0000":1}`, `"\ud800"`, `"\ud800\u0041"`, `"\udc00"`, `"\ud800\ud800"`, `"\ud800\\dc00"`, "[1]\x00",
}

func TestJSONIsAccepted(t *testing.T) {
	t.Parallel()
	for _, text := range goodJSON {
		require.NoError(t, pgmq.CheckJSON([]byte(text), pgmq.JSONLimits{}), text)
	}
}

func TestWhatIsNotJSONForPostgresIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range badJSON {
		require.Error(t, pgmq.CheckJSON([]byte(text), pgmq.JSONLimits{}), "%q", text)
	}
}

func TestAnErrorNamesThePlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]pgmq.JSONError{
		`{"input":{"items":[{},{"na/me":"x\u0000"}]}}`: {Offset: 33, Path: "/input/items/1/na~1me"},
		`{"a":1,"b~":[1,2,tru]}`:                       {Offset: 17, Path: "/b~0/2"},
		`[1,2`:                                         {Offset: 4, Path: "/1"},
		`"\ud800"`:                                     {Offset: 1},
	} {
		var err *pgmq.JSONError
		require.ErrorAs(t, pgmq.CheckJSON([]byte(text), pgmq.JSONLimits{}), &err)
		require.Equal(t, want.Offset, err.Offset, text)
		require.Equal(t, want.Path, err.Path, text)
	}
}

func TestLimitsHoldAtTheirEdges(t *testing.T) {
	t.Parallel()
	nested := func(n int) []byte { return []byte(strings.Repeat(`[`, n) + strings.Repeat(`]`, n)) }
	limits := pgmq.JSONLimits{Depth: 64}
	require.NoError(t, pgmq.CheckJSON(nested(64), limits))
	require.ErrorContains(t, pgmq.CheckJSON(nested(65), limits), "nested deeper than 64")
	require.NoError(t, pgmq.CheckJSON(nested(1_000_000), pgmq.JSONLimits{}), "no recursion")

	limits = pgmq.JSONLimits{Size: 4}
	require.NoError(t, pgmq.CheckJSON([]byte(`1234`), limits))
	require.ErrorContains(t, pgmq.CheckJSON([]byte(`12345`), limits), "5 bytes is over the limit of 4")

	limits = pgmq.JSONLimits{Number: 5}
	require.NoError(t, pgmq.CheckJSON([]byte(`-1.25`), limits))
	require.ErrorContains(t, pgmq.CheckJSON([]byte(`[-1.250]`), limits), "6 characters")

	limits = pgmq.JSONLimits{Exponent: 400}
	require.NoError(t, pgmq.CheckJSON([]byte(`[1e400,1e-400,1e+0000400]`), limits))
	for _, text := range []string{`1e401`, `1e-401`, `1E+99999999999999999999`} {
		require.ErrorContains(t, pgmq.CheckJSON([]byte(text), limits), "exponent beyond 400")
	}
}

// The scanner and encoding/json, written apart, agree on everything that only
// one of them has no reason of its own to refuse.
func FuzzCheckJSON(f *testing.F) {
	for _, text := range append(goodJSON, badJSON...) {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := pgmq.CheckJSON(text, pgmq.JSONLimits{})
		if err == nil {
			require.True(t, json.Valid(text), "%q", text)
			return
		}
		if !json.Valid(text) {
			return
		}
		var jsonErr *pgmq.JSONError
		require.ErrorAs(t, err, &jsonErr)
		require.Regexp(t, `cannot be stored by Postgres|invalid UTF-8`, jsonErr.Reason, "%q", text)
	})
}
