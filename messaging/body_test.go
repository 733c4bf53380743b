package messaging_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/pgtest"
	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/messaging/pgmq"
)

func TestTheLimitsAtTheDoor(t *testing.T) {
	t.Parallel()
	sized := func(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }
	nested := func(n int) string { return strings.Repeat(`[`, n) + strings.Repeat(`]`, n) }
	digits := func(n int) string { return strings.Repeat("1", n) }
	for _, body := range []string{sized(messaging.MaxBody), nested(64), digits(64), `1e999`, `1e-999`, `null`, `{"a":"🦊"}`} {
		require.NoError(t, messaging.CheckBody([]byte(body)))
	}
	for body, want := range map[string]string{
		sized(messaging.MaxBody + 1): "1048577 bytes is over the limit of 1048576",
		nested(65):                   "deeper than 64",
		nested(7000):                 "deeper than 64",
		`{"a":[` + digits(65) + `]}`: "65 characters is over the limit of 64: send it as a string (at /a/0, byte 6)",
		`1e100000`:                   "exponent beyond 999",
		`{"a":"\u0000"}`:             `\u0000 cannot be stored by Postgres: leave it out or encode the value (at /a, byte 6)`,
		`{"a":"\ud800"}`:             "surrogate pair",
		`{"a":"\udfff"}`:             "surrogate pair",
		``:                           "ends where a value should be",
	} {
		err := messaging.CheckBody([]byte(body))
		var jsonErr *pgmq.JSONError
		require.ErrorAs(t, err, &jsonErr)
		require.ErrorContains(t, err, want)
	}
}

// seeds of the generated bodies, and bodies in their own right.
var bodySeeds = []string{
	`{"order":{"id":7,"lines":[{"sku":"a-1","count":2,"price":19.90},{"sku":"b","count":1,"price":-0.5e+2}],"note":"hm \"ok\" \\ \/ \b\f\n\r\t"}}`,
	`[null,true,false,0,-0,1E5,1e-05,"\ud83d\ude00","\uD83D\uDE00 žluť 🦊",[],{},"",{"":{"":[[]]}}]`,
	` { "a" : 1 , "a" : 2 } `, `"\u0000"`, `"\ud800"`, `"\udc00x"`, `"\uFFFF\uFFFE"`, `01`, `1.`, `.1`, `+1`, `1e`, `[1,]`, `{"a":}`, "\"\t\"",
	`123456789012345678901234567890.123456789e-300`, `1e999`, `-1e-999`, `9.99999999999999999999999999999999999999999999999999999999999e999`,
	strings.Repeat(`[`, 64) + strings.Repeat(`]`, 64), strings.Repeat(`{"a":`, 63) + `1` + strings.Repeat(`}`, 63), "\"\x7f\u0080\u2028\"", "\ufeff1",
}

// mutated is a body with a few bytes taken out, doubled, replaced or moved.
func mutated(rnd *rand.Rand, text string) string {
	const alphabet = `{}[]",:\u0dD8cC/ eE+-.0123456789tfnabr` + "\n\x00\x1f\x7f\xff\xc3\xa9"
	b := []byte(text)
	for range 1 + rnd.IntN(4) {
		at := rnd.IntN(len(b) + 1)
		switch end := min(len(b), at+rnd.IntN(4)); rnd.IntN(4) {
		case 0:
			b = slices.Delete(b, at, end)
		case 1:
			b = slices.Insert(b, at, alphabet[rnd.IntN(len(alphabet))])
		case 2:
			b = slices.Insert(b, at, slices.Clone(b[at:end])...)
		case 3:
			if at < len(b) {
				b[at] = alphabet[rnd.IntN(len(alphabet))]
			}
		}
	}
	return string(b)
}

// Everything that CheckBody accepts, jsonb accepts; and what jsonb accepts,
// CheckBody refuses for its limits alone.
func TestCheckBodyAndPostgresAgree(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	bodies := slices.Clone(bodySeeds)
	for range 20_000 {
		bodies = append(bodies, mutated(rnd, bodySeeds[rnd.IntN(len(bodySeeds))]))
	}
	var sendable []string // a text with others never reaches jsonb
	for _, body := range bodies {
		if utf8.ValidString(body) && !strings.ContainsRune(body, 0) {
			sendable = append(sendable, body)
		} else {
			require.Error(t, messaging.CheckBody([]byte(body)), "%q", body)
		}
	}
	accepted := acceptedByPostgres(t, sendable)
	count := 0
	for i, body := range sendable {
		err := messaging.CheckBody([]byte(body))
		if err == nil {
			count++
			require.True(t, accepted[i], "Postgres refuses %q", body)
			continue
		}
		if accepted[i] {
			require.Regexp(t, `over the limit|deeper than|exponent beyond`, err.Error(), "%q", body)
		}
		// Without limits the two agree on all but what type numeric cannot hold.
		if pgmq.CheckJSON([]byte(body), pgmq.JSONLimits{Exponent: 16_000}) == nil {
			require.True(t, accepted[i], "Postgres refuses %q", body)
		}
	}
	require.Greater(t, count, 1000, "the generated bodies are not all wrong")
}

func acceptedByPostgres(t *testing.T, bodies []string) []bool {
	t.Helper()
	ctx, tx := t.Context(), pgtest.Tx(t)
	_, err := tx.Exec(ctx, `
		create function pg_temp.accepted(body text) returns boolean language plpgsql as $$
		begin
		  perform body::jsonb;
		  return true;
		exception when others then
		  return false;
		end $$`)
	require.NoError(t, err)
	var accepted []bool
	require.NoError(t, tx.QueryRow(ctx, `
		select array_agg(pg_temp.accepted(b) order by n) from unnest($1::text[]) with ordinality as u(b, n)`, bodies).Scan(&accepted))
	return accepted
}

func FuzzCheckBody(f *testing.F) {
	for _, body := range bodySeeds {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if messaging.CheckBody(body) == nil {
			require.True(t, json.Valid(body), "%q", body)
			require.True(t, utf8.Valid(body))
			require.LessOrEqual(t, len(body), messaging.MaxBody)
		}
	})
}
