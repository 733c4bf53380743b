package workflow

import "go.yaml.in/yaml/v3"

var retryFields = []string{"max_attempts", "backoff", "base", "max", "jitter"}

func defaultRetry() Retry {
	return Retry{
		MaxAttempts: DefaultMaxAttempts, Backoff: DefaultBackoff,
		Base: DefaultBackoffBase, Max: DefaultBackoffMax, Jitter: DefaultJitter,
	}
}

// retry reads a retry over what holds without it: the template's over the
// defaults, a step's over the template's, field by field.
func (d *decoder) retry(n *yaml.Node, what string, inherited Retry) Retry {
	r := inherited
	f := d.fields(n, what, retryFields)
	if v := f["max_attempts"]; v != nil {
		r.MaxAttempts = d.integer(v, what+": max_attempts", 1, 1000)
	}
	if v := f["backoff"]; v != nil {
		r.Backoff = d.choice(v, what+": backoff", "none", "fixed", "linear", "exponential")
		// What the other kind did not use is not inherited from it.
		if inherited.Backoff == "none" && r.Backoff != "none" {
			r.Base, r.Jitter = DefaultBackoffBase, DefaultJitter
		}
		if inherited.Backoff == "none" || inherited.Backoff == "fixed" {
			r.Max = max(r.Base, DefaultBackoffMax)
		}
	}
	if v := f["jitter"]; v != nil {
		r.Jitter = d.fraction(v, what+": jitter")
	}
	if v := f["base"]; v != nil {
		r.Base = d.duration(v, what+": base")
	}
	if v := f["max"]; v != nil {
		r.Max = d.duration(v, what+": max")
	}
	return d.fitBackoff(f, what, r)
}

// fitBackoff refuses fields that the kind of back-off does not use and makes
// those it does not use canonical.
func (d *decoder) fitBackoff(f map[string]*yaml.Node, what string, r Retry) Retry {
	var unused []string
	switch r.Backoff {
	case "none":
		unused = []string{"base", "max", "jitter"}
		r.Base, r.Max, r.Jitter = 0, 0, 0
	case "fixed":
		unused = []string{"max"}
		r.Max = r.Base
	default:
		if f["base"] != nil && f["max"] == nil && r.Base > r.Max && r.Max == DefaultBackoffMax {
			r.Max = r.Base
		}
		if at := firstOf(f["max"], f["base"]); at != nil && r.Max < r.Base {
			d.fail(at, "%s: max (%s) is shorter than base (%s)", what, FormatDuration(r.Max), FormatDuration(r.Base))
		}
	}
	for _, field := range unused {
		if v := f[field]; v != nil {
			d.fail(v, "%s: %s has no effect with backoff %s; leave it out", what, field, r.Backoff)
		}
	}
	return r
}

func firstOf(nodes ...*yaml.Node) *yaml.Node {
	for _, n := range nodes {
		if n != nil {
			return n
		}
	}
	return nil
}
