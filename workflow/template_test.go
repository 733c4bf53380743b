package workflow

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func parseOne(t *testing.T, text string) *Template {
	t.Helper()
	templates, err := ParseTemplates("t.yaml", []byte(text))
	require.NoError(t, err)
	require.Len(t, templates, 1)
	return templates[0]
}

func TestDefaultsAreFilledIn(t *testing.T) {
	t.Parallel()
	got := parseOne(t, "namespace: shop\nname: small\nsteps: [{name: only}]\n")
	require.JSONEq(t, `{
	  "namespace": "shop", "name": "small", "version": "1", "description": "", "input_schema": null,
	  "timeout_ms": null, "on_failure": "finish", "result": null,
	  "identity": {"strategy": "default", "scope": "template", "dedup_window_ms": null},
	  "retention_ms": null, "stuck_after": {}, "stuck_policy": "report",
	  "steps": [{
	    "no": 0, "name": "only", "handler": "shop.only", "queue": "shop_queue", "needs": [],
	    "config": null, "max_deliveries": 10, "timeout_ms": null, "lease_ms": 30000, "key": null, "claim": null,
	    "on_crash": "hold",
	    "retry": {"max_attempts": 3, "backoff": "exponential", "base_ms": 1000, "max_ms": 300000, "jitter": 0.2}
	  }]}`, string(got.Definition()))
	require.Equal(t, "shop/small@1", got.Ref())
}

func TestEveryFieldReachesTheDefinition(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/good/everything.yaml")
	require.NoError(t, err)
	templates, err := ParseTemplates("everything.yaml", data)
	require.NoError(t, err)
	require.Len(t, templates, 2)
	var lines []string
	for _, tmpl := range templates {
		var pretty strings.Builder
		e := json.NewEncoder(&pretty)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		require.NoError(t, e.Encode(tmpl.Definition()))
		lines = append(lines, pretty.String())
	}
	got := strings.Join(lines, "")
	if *update {
		require.NoError(t, os.WriteFile("testdata/good/everything.json", []byte(got), 0o644))
	}
	want, err := os.ReadFile("testdata/good/everything.json")
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func TestDefinitionDoesNotDependOnHowTheYAMLIsWritten(t *testing.T) {
	t.Parallel()
	a := parseOne(t, "namespace: shop\nname: x\nretry: {base: 60s}\nsteps:\n  - name: b\n    needs: [a]\n    key: input.id\n  - name: a\n    config: {x: 1, y: 2}\n")
	b := parseOne(t, `{"steps": [{"key": "${input.id}", "needs": [{"step": "a"}], "name": "b", "handler": "shop.b"},
	  {"config": {"y": 2, "x": 1}, "name": "a", "max_deliveries": 10}], "retry": {"base": "1m", "max": "5m"},
	  "name": "x", "version": "1", "namespace": "shop"}`)
	require.Equal(t, string(a.Definition()), string(b.Definition()))
}

func TestStepsAreInTopologicalOrder(t *testing.T) {
	t.Parallel()
	got := parseOne(t, "namespace: n\nname: x\nsteps:\n"+
		"  - {name: last, needs: [left, {step: right, accepts: [skipped]}]}\n  - {name: right, needs: [first]}\n"+
		"  - {name: left, needs: [first]}\n  - {name: first}\n  - {name: alone}\n")
	var names []string
	for i, s := range got.Steps {
		require.Equal(t, i, s.No)
		names = append(names, s.Name)
	}
	require.Equal(t, []string{"first", "right", "left", "last", "alone"}, names)
	require.Equal(t, []Need{{No: 1, AcceptsSkipped: true}, {No: 2}}, got.Steps[3].Needs)
}

func TestRetryIsInheritedFieldByField(t *testing.T) {
	t.Parallel()
	for retries, want := range map[string]Retry{
		"{} / {max_attempts: 1}":                         {1, "exponential", time.Second, 5 * time.Minute, 0.2},
		"{max_attempts: 5, jitter: 0} / {base: 2s}":      {5, "exponential", 2 * time.Second, 5 * time.Minute, 0},
		"{backoff: none} / {max_attempts: 2}":            {2, "none", 0, 0, 0},
		"{backoff: none} / {backoff: linear}":            {3, "linear", time.Second, 5 * time.Minute, 0.2},
		"{backoff: fixed, base: 3s} / {jitter: 1}":       {3, "fixed", 3 * time.Second, 3 * time.Second, 1},
		"{backoff: fixed, base: 3s} / {backoff: linear}": {3, "linear", 3 * time.Second, 5 * time.Minute, 0.2},
		"{backoff: linear} / {backoff: none}":            {3, "none", 0, 0, 0},
		"{} / {base: 10m}":                               {3, "exponential", 10 * time.Minute, 10 * time.Minute, 0.2},
	} {
		general, own, _ := strings.Cut(retries, " / ")
		got := parseOne(t, "namespace: n\nname: x\nretry: "+general+"\nsteps: [{name: a, retry: "+own+"}, {name: b}]\n")
		require.Equal(t, want, got.Steps[0].Retry, retries)
	}
}

func TestLargeTemplates(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("namespace: n\nname: chain\nsteps:\n")
	for i := MaxSteps - 1; i > 0; i-- { // written backwards, the worst order
		fmt.Fprintf(&b, "  - name: s%d\n    needs: [s%d]\n", i, i-1)
	}
	b.WriteString("  - name: s0\n")
	got := parseOne(t, b.String())
	require.Len(t, got.Steps, MaxSteps)
	require.Equal(t, "s0", got.Steps[0].Name)

	b.WriteString("  - name: one_too_many\n")
	_, err := ParseTemplates("t.yaml", []byte(b.String()))
	require.ErrorContains(t, err, "steps has 10001 steps; at most 10000")

	_, err = ParseTemplates("t.yaml", []byte("namespace: n\nname: x\nsteps: [{name: a, config: {x: "+strings.Repeat("y", MaxConfigBytes)+"}}]\n"))
	require.ErrorContains(t, err, "config has 262152 bytes as JSON; at most 262144")

	_, err = ParseTemplates("t.yaml", make([]byte, MaxFileBytes+1))
	require.ErrorContains(t, err, "at most 16777216, split it")
}

func TestDependenciesAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("namespace: n\nname: dense\nsteps:\n")
	for i := range 500 {
		fmt.Fprintf(&b, "  - name: a%d\n", i)
	}
	b.WriteString("  - name: b0\n    needs: &all [")
	for i := range 500 {
		fmt.Fprintf(&b, "a%d, ", i)
	}
	b.WriteString("]\n")
	for i := 1; i < 401; i++ {
		fmt.Fprintf(&b, "  - {name: b%d, needs: *all}\n", i)
	}
	_, err := ParseTemplates("t.yaml", []byte(b.String()))
	require.ErrorContains(t, err, "more than 200000 dependencies")
}

func TestManyProblemsAreCut(t *testing.T) {
	t.Parallel()
	text := "namespace: n\nname: x\nsteps:\n" + strings.Repeat("  - {}\n", 5000)
	_, err := ParseTemplates("t.yaml", []byte(text))
	var parse *ParseError
	require.ErrorAs(t, err, &parse)
	require.Len(t, parse.Problems, 1000)
	require.ErrorContains(t, err, "and 900 more problems")
}

// FuzzParseTemplates holds that whatever the bytes, parsing ends with templates
// that keep their promises or with problems that name a line.
func FuzzParseTemplates(f *testing.F) {
	for _, dir := range []string{"testdata/bad", "testdata/good"} {
		files, err := os.ReadDir(dir)
		require.NoError(f, err)
		for _, file := range files {
			if data, err := os.ReadFile(dir + "/" + file.Name()); err == nil && len(data) < 4096 {
				f.Add(data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		templates, err := ParseTemplates("f.yaml", data)
		if err != nil {
			var parse *ParseError
			require.ErrorAs(t, err, &parse)
			for _, p := range parse.Problems {
				require.Positive(t, p.Line)
				require.NotEmpty(t, p.Message)
			}
			return
		}
		require.NotEmpty(t, templates)
		for _, tmpl := range templates {
			require.True(t, json.Valid(tmpl.Definition()))
			require.NotContains(t, string(tmpl.Definition()), `\u0000`)
			for i, s := range tmpl.Steps {
				require.Equal(t, i, s.No)
				require.True(t, namePattern.MatchString(s.Name) && queuePattern.MatchString(s.Queue))
				for _, need := range s.Needs {
					require.Less(t, need.No, i)
				}
			}
		}
	})
}
