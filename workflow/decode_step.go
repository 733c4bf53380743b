package workflow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// reservedQueues begin with this: they belong to the engine.
const reservedQueues = "orchestration_"

var (
	stepFields = []string{
		"name", "handler", "queue", "needs", "config", "retry", "max_deliveries", "timeout", "lease", "key", "claim",
	}
	needFields = []string{"step", "accepts"}
)

// draft is a step before the names in its needs are looked up.
type draft struct {
	Step
	at    *yaml.Node
	needs []draftNeed
}

type draftNeed struct {
	at      *yaml.Node
	name    string
	skipped bool
	index   int // of the draft needed, once looked up
}

// steps reads the list of steps into the template, in topological order, and
// returns their names.
func (d *decoder) steps(n *yaml.Node, t *Template, retry Retry) []string {
	items := d.items(n, "steps")
	switch {
	case n.Kind == yaml.SequenceNode && len(items) == 0:
		d.fail(n, "steps is empty; a template has at least one step")
		return nil
	case len(items) > MaxSteps:
		d.fail(n, "steps has %d steps; at most %d", len(items), MaxSteps)
		return nil
	}
	drafts := make([]*draft, 0, len(items))
	first := make(map[string]int, len(items)) // line of each name
	edges := 0
	for i, item := range items {
		s := d.step(item, i, t, retry)
		if s == nil {
			continue
		}
		if edges += len(s.needs); edges > MaxNeeds {
			d.fail(s.at, "the steps have more than %d dependencies together", MaxNeeds)
			return nil
		}
		if line := first[s.Name]; s.Name != "" && line != 0 {
			d.fail(s.at, "step %s is given twice, first in line %d", s.Name, line)
			continue
		}
		first[s.Name] = s.at.Line
		drafts = append(drafts, s)
	}
	d.checkClaims(drafts)
	t.Steps = d.order(drafts)
	names := make([]string, len(drafts))
	for i, s := range drafts {
		names[i] = s.Name
	}
	return names
}

func (d *decoder) step(n *yaml.Node, index int, t *Template, retry Retry) *draft {
	what := fmt.Sprintf("step number %d", index+1)
	s := &draft{at: n, Step: Step{Retry: retry, MaxDeliveries: DefaultMaxDeliveries, Lease: DefaultLease, OnCrash: "hold"}}
	if n.Kind == yaml.MappingNode {
		if name := nodeAt(n, []string{"name"}); name != n && namePattern.MatchString(name.Value) {
			what = "step " + name.Value
		}
	}
	f := d.fields(n, what, stepFields)
	if n.Kind != yaml.MappingNode {
		return nil
	}
	if v := f["name"]; v != nil {
		s.Name = d.name(v, what+": name")
	} else if !hasKey(n, "name") {
		d.fail(n, "%s lacks name", what)
	}
	d.stepPlace(f, s, what, t)
	if v := f["needs"]; v != nil {
		s.needs = d.needs(v, what)
	}
	if v := f["config"]; v != nil {
		s.Config = d.object(v, what+": config")
	}
	if v := f["retry"]; v != nil {
		s.Retry = d.retry(v, what+": retry", retry)
	}
	if v := f["max_deliveries"]; v != nil {
		s.MaxDeliveries = d.integer(v, what+": max_deliveries", 1, 1000)
	}
	if v := f["timeout"]; v != nil {
		s.Timeout = d.duration(v, what+": timeout")
	}
	if v := f["lease"]; v != nil {
		s.Lease = d.lease(v, what)
	}
	if v := f["key"]; v != nil {
		s.Key = d.expression(v, what+": key")
	}
	if v := f["claim"]; v != nil {
		d.claim(v, what, &s.Step)
	}
	return s
}

// stepPlace reads who works on a step: handler and queue, or their defaults.
func (d *decoder) stepPlace(f map[string]*yaml.Node, s *draft, what string, t *Template) {
	if v := f["handler"]; v != nil {
		s.Handler = d.matching(v, what+": handler", handlerPattern,
			"a handler begins with a letter and has up to 128 letters, digits, dots, dashes and underscores")
	} else {
		s.Handler = t.Namespace + "." + s.Name
	}
	queue, at := t.Namespace+"_queue", s.at
	if v := f["queue"]; v != nil {
		at = v
		queue = d.matching(v, what+": queue", queuePattern,
			"a queue begins with a lower-case letter and has up to 40 lower-case letters, digits and underscores")
	} else if t.Namespace != "" && !queuePattern.MatchString(queue) {
		d.fail(at, "%s lacks queue: the default, %s, is longer than 40 characters", what, queue)
		return
	}
	if strings.HasPrefix(queue, reservedQueues) {
		d.fail(at, "%s: queue %s belongs to the engine; give another one", what, queue)
		return
	}
	s.Queue = queue
}

// needs reads a list of names, or of mappings {step, accepts: [skipped]}.
func (d *decoder) needs(n *yaml.Node, what string) []draftNeed {
	var all []draftNeed
	seen := make(map[string]bool, len(n.Content))
	for _, item := range d.items(n, what+": needs") {
		need := draftNeed{at: item}
		if item.Kind == yaml.MappingNode {
			f := d.fields(item, what+": needs", needFields)
			if v := f["step"]; v != nil {
				need.name = d.text(v, what+": needs: step", 63)
			} else if !hasKey(item, "step") {
				d.fail(item, "%s: needs: a mapping lacks step", what)
			}
			if v := f["accepts"]; v != nil {
				for _, state := range d.items(v, what+": needs: accepts") {
					need.skipped = d.choice(state, what+": needs: accepts", string(StepSkipped)) != "" || need.skipped
				}
			}
		} else {
			need.name = d.text(item, what+": needs", 63)
		}
		switch {
		case need.name == "":
		case seen[need.name]:
			d.fail(item, "%s needs %s twice", what, quote(need.name))
		default:
			seen[need.name] = true
			all = append(all, need)
		}
	}
	return all
}

// lease reads whole seconds: queues count visibility in them.
func (d *decoder) lease(n *yaml.Node, what string) time.Duration {
	v := d.duration(n, what+": lease")
	switch {
	case v%time.Second != 0:
		d.fail(n, "%s: lease must be whole seconds", what)
	case v > 12*time.Hour:
		d.fail(n, "%s: lease is longer than 12h; workers renew a lease while they work", what)
	}
	return v
}

func (d *decoder) expression(n *yaml.Node, what string) string {
	s := d.text(n, what, 1024)
	if s == "" {
		return ""
	}
	expr, err := parseExpression(s)
	if err != nil {
		d.fail(n, "%s %v", what, err)
	}
	return expr
}

// stepReference reads the name of one of these steps.
func (d *decoder) stepReference(n *yaml.Node, what string, names []string) string {
	s := d.text(n, what, 63)
	if s == "" || slices.Contains(names, s) {
		return s
	}
	if len(names) > 0 {
		d.fail(n, "%s: there is no step %s%s", what, quote(s), d.suggest(s, names))
	}
	return ""
}

func decimal(i int) string { return strconv.Itoa(i) }
