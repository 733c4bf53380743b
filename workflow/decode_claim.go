package workflow

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

var claimFields = []string{"entity", "id", "from", "into", "revert_to", "on_success", "on_busy"}

// claim reads a mapping of requesters to claims or none, and on_crash.
func (d *decoder) claim(n *yaml.Node, what string, s *Step) {
	s.Claims = make(map[string]*Claim)
	for _, e := range d.entries(n, what+": claim") {
		if e.key == "on_crash" {
			if v := d.choice(e.value, what+": claim: on_crash", "hold", "retry"); v != "" {
				s.OnCrash = v
			}
			continue
		}
		if !versionPattern.MatchString(e.key) {
			d.fail(e.at, "%s: claim: requester %s is not allowed: it has up to 63 letters, digits, dots, dashes and underscores",
				what, quote(e.key))
			continue
		}
		switch {
		case e.value.Kind == yaml.MappingNode:
			s.Claims[e.key] = d.claimOf(e.value, what+": claim "+e.key)
		case e.value.Value == "none" && e.value.Kind == yaml.ScalarNode:
			s.Claims[e.key] = nil
		default:
			d.fail(e.value, "%s: claim %s must be a mapping or none, not %s", what, e.key, kindOf(e.value))
		}
	}
	if n.Kind == yaml.MappingNode && !slices.ContainsFunc(claimKeys(n), func(k string) bool { return k != "on_crash" }) {
		d.fail(n, "%s: claim names no requester; give one, or default", what)
	}
}

func claimKeys(n *yaml.Node) []string {
	var keys []string
	for i := 0; i+1 < len(n.Content); i += 2 {
		keys = append(keys, n.Content[i].Value)
	}
	return keys
}

// claimOf reads one claim. Of the six rules, 1 and 3 to 5 are checked here, 6
// within the template by checkClaims; 2 and the rest of 6 need the database.
func (d *decoder) claimOf(n *yaml.Node, what string) *Claim {
	f := d.fields(n, what, claimFields)
	for _, field := range claimFields[:6] {
		if f[field] == nil && !hasKey(n, field) {
			d.fail(n, "%s lacks %s", what, field)
		}
	}
	c := &Claim{OnBusy: "fail"}
	if v := f["entity"]; v != nil {
		c.Entity = d.name(v, what+": entity")
	}
	if v := f["id"]; v != nil {
		c.ID = d.expression(v, what+": id")
	}
	c.From = d.status(f["from"], what, "from")
	c.Into = d.status(f["into"], what, "into")
	c.RevertTo = d.status(f["revert_to"], what, "revert_to")
	c.OnSuccess = d.status(f["on_success"], what, "on_success")
	if v := f["on_busy"]; v != nil {
		c.OnBusy = d.choice(v, what+": on_busy", "fail", "wait")
	}
	if c.Into == "" {
		return c
	}
	if c.Into == c.RevertTo {
		d.fail(f["revert_to"], "%s breaks claim rule 3: into and revert_to are both %s, so that a failure would release nothing",
			what, quote(c.Into))
	}
	if c.Into == c.From {
		d.fail(f["from"], "%s breaks claim rule 4: into and from are both %s, so that a second caller could claim as well",
			what, quote(c.Into))
	}
	if c.Into == c.OnSuccess {
		d.fail(f["on_success"], "%s breaks claim rule 5: into and on_success are both %s, so that success would release nothing",
			what, quote(c.Into))
	}
	return c
}

// status reads the name of a state of an entity; rule 1 says that it is text.
func (d *decoder) status(n *yaml.Node, what, field string) string {
	switch {
	case n == nil:
	case n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str":
		d.fail(n, "%s breaks claim rule 1: %s must be text, not %s", what, field, kindOf(n))
	default:
		return d.text(n, what+": "+field, 255)
	}
	return ""
}

// checkClaims holds rule 6 within a template: one into of an entity has one revert_to.
func (d *decoder) checkClaims(drafts []*draft) {
	type claimed struct{ entity, into string }
	type reverted struct{ to, step, requester string }
	first := make(map[claimed]reverted)
	for _, s := range drafts {
		for _, requester := range slices.Sorted(maps.Keys(s.Claims)) {
			c := s.Claims[requester]
			if c == nil || c.Entity == "" || c.Into == "" || c.RevertTo == "" {
				continue
			}
			was, ok := first[claimed{c.Entity, c.Into}]
			if !ok {
				first[claimed{c.Entity, c.Into}] = reverted{c.RevertTo, s.Name, requester}
			} else if was.to != c.RevertTo {
				at := nodeAt(s.at, []string{"claim", requester, "revert_to"})
				d.fail(at, "step %s: claim %s breaks claim rule 6: %s of %s reverts to %s here, but to %s in step %s, claim %s; "+
					"a janitor could not tell which", s.Name, requester, quote(c.Into), c.Entity, quote(c.RevertTo),
					quote(was.to), was.step, was.requester)
			}
		}
	}
}
