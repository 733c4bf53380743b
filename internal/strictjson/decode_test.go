package strictjson_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawl-dev/pawl/internal/strictjson"
)

type line struct {
	SKU   string  `json:"sku"`
	Count int64   `json:"count,omitempty"`
	Fast  bool    `json:"fast" body:"true"`
	Note  string  `json:"note,omitempty" body:"empty"`
	Tip   *tip    `json:"tip,omitempty" body:"nullable"`
	Extra float64 `json:"extra,omitempty"`
}

type tip struct {
	Any json.RawMessage `json:"any"`
}

type order struct {
	Lines []line `json:"lines"`
}

func read(text string) (o order, err error) {
	fields, err := strictjson.Object([]byte(text))
	if err != nil {
		return o, err
	}
	return o, strictjson.Fill(fields, &o)
}

func TestListsOfObjectsAreRead(t *testing.T) {
	t.Parallel()
	got, err := read(`{"lines":[{"sku":"a"},{"sku":"b","count":2,"fast":false,"note":"","tip":{"any":null},"extra":1e1},{"sku":"c","tip":null}]}`)
	require.NoError(t, err)
	require.Equal(t, []line{
		{SKU: "a", Fast: true},
		{SKU: "b", Count: 2, Tip: &tip{Any: json.RawMessage(`null`)}, Extra: 10},
		{SKU: "c", Fast: true},
	}, got.Lines)
}

func TestErrorsSayWhere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`:                                  `not a JSON object`,
		`{"lines":{}}`:                        `field "lines": must be a list`,
		`{"lines":[{"sku":"a"},5]}`:           `field "lines[1]": not a JSON object`,
		`{"lines":[{"sku":"a"},{"sku":""}]}`:  `field "lines[1].sku": is empty`,
		`{"lines":[{"sku":"a","SKU":"b"}]}`:   `field "lines[0].SKU": is unknown; did you mean "sku"? Allowed: sku, count, fast, note, tip, extra`,
		`{"lines":[{"sku":"a","count":1.5}]}`: `field "lines[0].count": must be a whole number`,
		`{"lines":[{"sku":"a","tip":{}}]}`:    `field "lines[0].tip.any": is missing`,
		`{"lines":[{"sku":"a","fast":null}]}`: `field "lines[0].fast": is null`,
	} {
		_, err := read(text)
		var wrong *strictjson.Error
		require.ErrorAs(t, err, &wrong, text)
		require.ErrorContains(t, err, want)
	}
}
