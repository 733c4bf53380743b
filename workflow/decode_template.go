package workflow

import (
	"errors"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/pawl-dev/pawl/internal/jsonschema"
)

// Defaults of a template's fields.
const (
	DefaultVersion       = "1"
	DefaultMaxAttempts   = 3
	DefaultBackoff       = "exponential"
	DefaultBackoffBase   = time.Second
	DefaultBackoffMax    = 5 * time.Minute
	DefaultJitter        = 0.2
	DefaultMaxDeliveries = 10
	DefaultLease         = 30 * time.Second
)

var (
	templateFields = []string{
		"namespace", "name", "version", "description", "input_schema", "timeout", "on_failure", "retry",
		"result", "identity", "retention", "stuck_after", "stuck_policy", "steps",
	}
	identityFields = []string{"strategy", "scope", "dedup_window"}
)

// template reads one document.
func (d *decoder) template(n *yaml.Node) *Template {
	t := &Template{
		File: d.file, Line: n.Line, Version: DefaultVersion, OnFailure: Finish,
		Identity: Identity{Strategy: "default", Scope: "template"}, StuckPolicy: "report",
	}
	f := d.fields(n, "template", templateFields)
	if n.Kind != yaml.MappingNode {
		return t
	}
	for _, required := range []string{"namespace", "name", "steps"} {
		if f[required] == nil && !hasKey(n, required) {
			d.fail(n, "template lacks %s", required)
		}
	}
	if v := f["namespace"]; v != nil {
		t.Namespace = d.name(v, "namespace")
	}
	if v := f["name"]; v != nil {
		t.Name = d.name(v, "name")
	}
	if v := f["version"]; v != nil {
		t.Version = d.version(v)
	}
	if v := f["description"]; v != nil {
		t.Description = d.text(v, "description", 4096)
	}
	if v := f["on_failure"]; v != nil {
		t.OnFailure = OnFailure(d.choice(v, "on_failure", string(Finish), string(FailFast), string(Hold)))
	}
	if v := f["input_schema"]; v != nil {
		t.InputSchema = d.schema(v)
	}
	d.templateTimes(f, t)
	retry := defaultRetry()
	if v := f["retry"]; v != nil {
		retry = d.retry(v, "retry", retry)
	}
	if v := f["identity"]; v != nil {
		t.Identity = d.identity(v)
	}
	var names []string
	if v := f["steps"]; v != nil {
		names = d.steps(v, t, retry)
	}
	if v := f["result"]; v != nil {
		t.Result = d.stepReference(v, "result", names)
	}
	return t
}

func (d *decoder) templateTimes(f map[string]*yaml.Node, t *Template) {
	if v := f["timeout"]; v != nil {
		t.Timeout = d.duration(v, "timeout")
	}
	if v := f["retention"]; v != nil {
		if keep, ok := d.durationOrZero(v, "retention"); ok {
			t.Retention = &keep
		}
	}
	if v := f["stuck_after"]; v != nil {
		t.StuckAfter = d.stuckAfter(v)
	}
	if v := f["stuck_policy"]; v != nil {
		t.StuckPolicy = d.choice(v, "stuck_policy", "report")
	}
}

// version reads text or a number, which stays as it is written: 1.10 is not 1.1.
func (d *decoder) version(n *yaml.Node) string {
	tag := n.ShortTag()
	if n.Kind == yaml.ScalarNode && (tag == "!!int" || tag == "!!float") {
		tag = "!!str"
	}
	switch {
	case n.Kind != yaml.ScalarNode || tag != "!!str":
		d.fail(n, "version must be text or a number, not %s", kindOf(n))
	case !versionPattern.MatchString(n.Value):
		d.fail(n, "version %s is not allowed: a version has up to 63 letters, digits, dots, dashes and underscores", quote(n.Value))
	default:
		return n.Value
	}
	return ""
}

// schema reads a JSON Schema and notes each problem at the line it stands in.
func (d *decoder) schema(n *yaml.Node) []byte {
	raw := d.object(n, "input_schema")
	if raw == nil {
		return nil
	}
	_, err := jsonschema.Compile(raw)
	if err == nil {
		return raw
	}
	var invalid *jsonschema.Error
	if !errors.As(err, &invalid) {
		d.fail(n, "input_schema: %v", err)
		return nil
	}
	for _, p := range invalid.Problems {
		d.fail(nodeAt(n, p.Path), "input_schema: %s", p)
	}
	return nil
}

// nodeAt follows a path into a value as far as it leads.
func nodeAt(n *yaml.Node, path []string) *yaml.Node {
	for _, part := range path {
		next := (*yaml.Node)(nil)
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == part {
					next = resolve(n.Content[i+1])
				}
			}
		case yaml.SequenceNode:
			for i := range n.Content {
				if part == decimal(i) {
					next = resolve(n.Content[i])
				}
			}
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

func (d *decoder) identity(n *yaml.Node) Identity {
	id := Identity{Strategy: "default", Scope: "template"}
	f := d.fields(n, "identity", identityFields)
	if v := f["strategy"]; v != nil {
		id.Strategy = d.choice(v, "identity strategy", "caller_provided", "strict", "always_unique")
	}
	if v := f["scope"]; v != nil {
		id.Scope = d.choice(v, "identity scope", "template", "namespace")
	}
	if v := f["dedup_window"]; v != nil {
		if window, ok := d.durationOrZero(v, "dedup_window"); ok {
			id.DedupWindow = &window
		}
	}
	if id.Strategy == "always_unique" {
		for _, field := range []string{"scope", "dedup_window"} {
			if v := f[field]; v != nil {
				d.fail(v, "identity: %s has no effect with strategy always_unique; leave it out", field)
			}
		}
	}
	return id
}

func (d *decoder) stuckAfter(n *yaml.Node) map[TaskState]time.Duration {
	var open []string
	for _, s := range taskStates {
		if s.IsOpen() {
			open = append(open, string(s))
		}
	}
	m := make(map[TaskState]time.Duration)
	for _, e := range d.entries(n, "stuck_after") {
		if !slices.Contains(open, e.key) {
			d.fail(e.at, "stuck_after: %s is not an open state of a task%s", quote(e.key), d.suggest(e.key, open))
			continue
		}
		m[TaskState(e.key)] = d.duration(e.value, "stuck_after "+e.key)
	}
	return m
}

func hasKey(n *yaml.Node, key string) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}
