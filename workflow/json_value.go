package workflow

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxJSONDepth is how deep values may nest; bodies of messages have the same bound.
const maxJSONDepth = 64

const maxNumberLength = 64

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$`)

// object reads a mapping as the JSON object that the database will hold.
func (d *decoder) object(n *yaml.Node, what string) json.RawMessage {
	if n.Kind != yaml.MappingNode {
		d.fail(n, "%s must be a mapping, not %s", what, kindOf(n))
		return nil
	}
	v, ok := d.jsonValue(n, what, 1)
	if !ok {
		return nil
	}
	raw, err := encode(v)
	if err != nil {
		d.fail(n, "%s cannot be written as JSON: %v", what, err)
		return nil
	}
	if len(raw) > MaxConfigBytes {
		d.fail(n, "%s has %d bytes as JSON; at most %d", what, len(raw), MaxConfigBytes)
		return nil
	}
	return raw
}

func (d *decoder) jsonValue(n *yaml.Node, what string, depth int) (any, bool) {
	n = resolve(n)
	d.jsonNodes--
	switch {
	case depth > maxJSONDepth:
		d.fail(n, "%s nests deeper than %d levels", what, maxJSONDepth)
		return nil, false
	case d.jsonNodes < 0:
		if d.jsonNodes == -1 {
			d.fail(n, "%s has too many values; the configs and schemas of one file hold at most 1,000,000", what)
		}
		return nil, false
	}
	switch n.Kind {
	case yaml.MappingNode:
		return d.jsonObject(n, what, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			v, ok := d.jsonValue(item, what, depth+1)
			if !ok {
				return nil, false
			}
			list = append(list, v)
		}
		return list, true
	}
	return d.jsonScalar(n, what)
}

func (d *decoder) jsonObject(n *yaml.Node, what string, depth int) (any, bool) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		_, twice := m[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			d.fail(key, "%s: a key must be text, not %s; put it in quotes", what, kindOf(key))
			return nil, false
		case strings.ContainsRune(key.Value, 0):
			d.fail(key, "%s must not contain the character U+0000", what)
			return nil, false
		case twice:
			d.fail(key, "%s: %s is given twice", what, quote(key.Value))
			return nil, false
		}
		v, ok := d.jsonValue(n.Content[i+1], what, depth+1)
		if !ok {
			return nil, false
		}
		m[key.Value] = v
	}
	return m, true
}

func (d *decoder) jsonScalar(n *yaml.Node, what string) (any, bool) {
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!timestamp": // JSON has no times: they stay the text they were
		if strings.ContainsRune(n.Value, 0) {
			d.fail(n, "%s must not contain the character U+0000", what)
			return nil, false
		}
		return n.Value, true
	case "!!null":
		return nil, true
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b, true
		}
	case "!!int", "!!float":
		return d.jsonNumber(n, what)
	}
	d.fail(n, "%s cannot hold %s: JSON has no such thing", what, kindOf(n))
	return nil, false
}

// jsonNumber keeps the digits as they were written where JSON would write them so.
func (d *decoder) jsonNumber(n *yaml.Node, what string) (any, bool) {
	if len(n.Value) > maxNumberLength {
		d.fail(n, "%s has a number of %d characters; at most %d", what, len(n.Value), maxNumberLength)
		return nil, false
	}
	if jsonNumber.MatchString(n.Value) {
		return json.Number(n.Value), true
	}
	var i int64
	if n.ShortTag() == "!!int" && n.Decode(&i) == nil {
		return json.Number(strconv.FormatInt(i, 10)), true
	}
	var f float64
	if n.Decode(&f) != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		d.fail(n, "%s: JSON has no number %s", what, n.Value)
		return nil, false
	}
	return f, true
}

// encode writes JSON with sorted keys and without HTML's escapes.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
