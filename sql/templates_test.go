package sql_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// twoSteps is a definition that is as it should be, with fields put over it and over its second step.
func twoSteps(template, step object) object {
	second := object{"no": 1, "name": "b", "handler": "b", "queue": "work_queue", "needs": []any{0}}
	maps.Copy(second, step)
	definition := object{"namespace": "doors", "name": "two", "version": "1", "steps": []any{
		object{"no": 0, "name": "a", "handler": "a", "queue": "work_queue", "needs": []any{}}, second}}
	maps.Copy(definition, template)
	return definition
}

// R10: what the parser of YAML refuses does not come in through SQL.
func TestDefinitionsAreRefusedByField(t *testing.T) {
	k := newKit(t)
	for want, definition := range map[string]object{
		"unknown field retries":                               twoSteps(object{"retries": 3}, nil),
		"unknown field steps[1].time_out":                     twoSteps(nil, object{"time_out": 3}),
		"unknown field steps[1].retry.attempts":               twoSteps(nil, object{"retry": object{"attempts": 3}}),
		"unknown field steps[1].needs[0].accepts":             twoSteps(nil, object{"needs": []any{object{"no": 0, "accepts": "skipped"}}}),
		"unknown field identity.keys":                         twoSteps(object{"identity": object{"keys": 1}}, nil),
		"unknown field steps[1].claim.default.onbusy":         twoSteps(nil, object{"claim": object{"default": object{"id": "x", "onbusy": "wait"}}}),
		"steps[1].claim.default.on_busy must be fail or wait": twoSteps(nil, object{"claim": object{"default": object{"id": "x", "on_busy": "hope"}}}),
		"name must be a name":                                 twoSteps(object{"name": nil}, nil),
		"namespace must be a name":                            twoSteps(object{"namespace": "Doors"}, nil),
		"version must be":                                     twoSteps(object{"version": 1}, nil),
		"description must be":                                 twoSteps(object{"description": strings.Repeat("d", 4097)}, nil),
		"on_failure must be finish, fail_fast or hold":        twoSteps(object{"on_failure": "stop"}, nil),
		"timeout_ms must be milliseconds from 1":              twoSteps(object{"timeout_ms": 0}, nil),
		"retention_ms must be milliseconds":                   twoSteps(object{"retention_ms": "7d"}, nil),
		"stuck_after.walking must be":                         twoSteps(object{"stuck_after": object{"walking": 1000}}, nil),
		"stuck_after.pending must be":                         twoSteps(object{"stuck_after": object{"pending": "1h"}}, nil),
		"result names no step":                                twoSteps(object{"result": "c"}, nil),
		"identity must be an object":                          twoSteps(object{"identity": "strict"}, nil),
		"identity.strategy must be":                           twoSteps(object{"identity": object{"strategy": "stict"}}, nil),
		"input_schema must be a JSON Schema":                  twoSteps(object{"input_schema": "object"}, nil),
		"steps must be a list of steps":                       twoSteps(object{"steps": object{}}, nil),
		"steps must have 1 to 10000 steps":                    twoSteps(object{"steps": []any{}}, nil),
		"steps[0] must be an object":                          twoSteps(object{"steps": []any{"a"}}, nil),
		"steps[1].no must be 1":                               twoSteps(nil, object{"no": 2}),
		"steps[1].no must be its place in the list":           twoSteps(nil, object{"no": "1"}),
		"2 steps are named a":                                 twoSteps(nil, object{"name": "a"}),
		"steps[1].handler must be a letter":                   twoSteps(nil, object{"handler": nil}),
		"steps[1].queue must be the name of a queue":          twoSteps(nil, object{"queue": 7}),
		"steps[1].needs must be a list":                       twoSteps(nil, object{"needs": "a"}),
		"steps[1].needs[0] must be the number of a step":      twoSteps(nil, object{"needs": []any{"a"}}),
		"steps[1].needs names a step twice":                   twoSteps(nil, object{"needs": []any{0, object{"no": 0}}}),
		"steps[1].needs[0].accepts_skipped must be true":      twoSteps(nil, object{"needs": []any{object{"no": 0, "accepts_skipped": "yes"}}}),
		"steps[1].config must be an object":                   twoSteps(nil, object{"config": []any{1}}),
		"steps[1].retry.max_attempts must be a whole number":  twoSteps(nil, object{"retry": object{"max_attempts": 1.5}}),
		"steps[1].retry.jitter must be a number":              twoSteps(nil, object{"retry": object{"jitter": "much"}}),
		"steps[1].retry.backoff must be":                      twoSteps(nil, object{"retry": object{"backoff": "some"}}),
		"steps[1].max_deliveries must be a whole number":      twoSteps(nil, object{"max_deliveries": 0}),
		"steps[1].lease_ms must be milliseconds from 1000":    twoSteps(nil, object{"lease_ms": 30}),
		"steps[1].key must be an expression":                  twoSteps(nil, object{"key": ""}),
		"steps[1].on_crash must be hold or retry":             twoSteps(nil, object{"on_crash": "forget"}),
		"; and 1 more":                                        twoSteps(object{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1}, nil),
	} {
		raised := k.refused("PW013", "select pawl.register_template($1)", definition)
		require.Contains(t, raised.Message, want)
		require.NotEmpty(t, raised.Hint)
	}
	k.refused("PW013", "select pawl.register_template('[]')")
	k.refused("PW013", "select pawl.register_template('{}')")
	k.Exec("select pawl.register_template($1)", twoSteps(nil, object{"config": nil, "key": nil, "claim": nil, "timeout_ms": nil}))
}

// The fields that SQL takes are those that the parser of YAML writes: its examples have all of them.
func TestDefinitionsHaveTheFieldsThatTheParserWrites(t *testing.T) {
	k := newKit(t)
	written := map[string]bool{}
	note := func(place string, value any) {
		fields, _ := value.(object)
		for field := range fields {
			written[place+"."+field] = true
		}
	}
	files, err := filepath.Glob("../workflow/testdata/good/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		data, err := os.Open(file)
		require.NoError(t, err)
		defer data.Close()
		for decoder := json.NewDecoder(data); decoder.More(); {
			var definition object
			require.NoError(t, decoder.Decode(&definition))
			require.Nil(t, get[*[]string](k, "select pawl.template_problems($1)", definition), file)
			note("template", definition)
			note("identity", definition["identity"])
			for _, s := range definition["steps"].([]any) {
				step := s.(object)
				note("step", step)
				note("retry", step["retry"])
				for _, need := range step["needs"].([]any) {
					note("need", need)
				}
				claims, _ := step["claim"].(object)
				for _, claim := range claims {
					note("claim", claim)
				}
			}
		}
	}
	require.Equal(t, slices.Sorted(maps.Keys(written)),
		list[string](k, `select place || '.' || field from pawl.template_fields() order by (place || '.' || field) collate "C"`))
}

func TestAFieldThatIsNullIsNotThere(t *testing.T) {
	k := newKit(t)
	k.Exec("select pawl.register_template($1)", twoSteps(object{"stuck_after": nil}, object{"needs": nil}))
	k.Exec("update pawl.templates set stuck_after = 'null'") // as it was stored once
	k.Template("shop/one", nil, step("a"))
	k.Submit("shop/one")
	k.Later(2 * time.Hour)
	k.reconcile()
}
