package workflow

import (
	"encoding/json"
	"fmt"
	"time"
)

// definition is the canonical JSON of a template: every field is there, durations
// are milliseconds, steps are numbered and refer to each other by number.
type definition struct {
	Namespace   string              `json:"namespace"`
	Name        string              `json:"name"`
	Version     string              `json:"version"`
	Description string              `json:"description"`
	InputSchema json.RawMessage     `json:"input_schema"`
	TimeoutMS   *int64              `json:"timeout_ms"`
	OnFailure   OnFailure           `json:"on_failure"`
	Result      *string             `json:"result"`
	Identity    identityDefinition  `json:"identity"`
	RetentionMS *int64              `json:"retention_ms"`
	StuckAfter  map[TaskState]int64 `json:"stuck_after"`
	StuckPolicy string              `json:"stuck_policy"`
	Steps       []stepDefinition    `json:"steps"`
}

type identityDefinition struct {
	Strategy      string `json:"strategy"`
	Scope         string `json:"scope"`
	DedupWindowMS *int64 `json:"dedup_window_ms"`
}

type stepDefinition struct {
	No      int    `json:"no"`
	Name    string `json:"name"`
	Handler string `json:"handler"`
	Queue   string `json:"queue"`
	// Needs are numbers of steps, or needDefinitions of those that may be skipped.
	Needs         []any           `json:"needs"`
	Config        json.RawMessage `json:"config"`
	Retry         retryDefinition `json:"retry"`
	MaxDeliveries int             `json:"max_deliveries"`
	TimeoutMS     *int64          `json:"timeout_ms"`
	LeaseMS       int64           `json:"lease_ms"`
	Key           *string         `json:"key"`
	// Claim maps requesters to claims, or to the text none.
	Claim   map[string]any `json:"claim"`
	OnCrash string         `json:"on_crash"`
}

type needDefinition struct {
	No             int  `json:"no"`
	AcceptsSkipped bool `json:"accepts_skipped"`
}

type retryDefinition struct {
	MaxAttempts int     `json:"max_attempts"`
	Backoff     string  `json:"backoff"`
	BaseMS      int64   `json:"base_ms"`
	MaxMS       int64   `json:"max_ms"`
	Jitter      float64 `json:"jitter"`
}

type claimDefinition struct {
	Entity    string `json:"entity"`
	ID        string `json:"id"`
	From      string `json:"from"`
	Into      string `json:"into"`
	RevertTo  string `json:"revert_to"`
	OnSuccess string `json:"on_success"`
	OnBusy    string `json:"on_busy"`
}

// Definition returns the canonical JSON of the template, what
// pawl.register_template takes: all defaults filled in, absent things null,
// durations in milliseconds, steps in topological order. Equal templates have
// equal definitions, however their YAML was written. It is nil for a template
// that [ParseTemplates] did not make.
func (t *Template) Definition() json.RawMessage { return t.definition }

func (t *Template) define() error {
	def := definition{
		Namespace: t.Namespace, Name: t.Name, Version: t.Version, Description: t.Description,
		InputSchema: t.InputSchema, TimeoutMS: positive(t.Timeout), OnFailure: t.OnFailure, Result: nonEmpty(t.Result),
		Identity:    identityDefinition{t.Identity.Strategy, t.Identity.Scope, optional(t.Identity.DedupWindow)},
		RetentionMS: optional(t.Retention), StuckAfter: make(map[TaskState]int64, len(t.StuckAfter)),
		StuckPolicy: t.StuckPolicy, Steps: make([]stepDefinition, len(t.Steps)),
	}
	for state, after := range t.StuckAfter {
		def.StuckAfter[state] = after.Milliseconds()
	}
	for i := range t.Steps {
		def.Steps[i] = t.Steps[i].define()
	}
	raw, err := encode(def)
	if err != nil {
		return fmt.Errorf("writing the definition of template %s: %w", t.Ref(), err)
	}
	t.definition = raw
	return nil
}

func (s *Step) define() stepDefinition {
	def := stepDefinition{
		No: s.No, Name: s.Name, Handler: s.Handler, Queue: s.Queue,
		Needs: make([]any, len(s.Needs)), Config: s.Config,
		Retry: retryDefinition{
			s.Retry.MaxAttempts, s.Retry.Backoff, s.Retry.Base.Milliseconds(), s.Retry.Max.Milliseconds(), s.Retry.Jitter,
		},
		MaxDeliveries: s.MaxDeliveries, TimeoutMS: positive(s.Timeout), LeaseMS: s.Lease.Milliseconds(),
		Key: nonEmpty(s.Key), OnCrash: s.OnCrash,
	}
	for i, need := range s.Needs {
		def.Needs[i] = need.No
		if need.AcceptsSkipped {
			def.Needs[i] = needDefinition(need)
		}
	}
	if s.Claims != nil {
		def.Claim = make(map[string]any, len(s.Claims))
	}
	for requester, c := range s.Claims {
		if c == nil {
			def.Claim[requester] = "none"
			continue
		}
		def.Claim[requester] = claimDefinition(*c)
	}
	return def
}

func positive(d time.Duration) *int64 {
	if d == 0 {
		return nil
	}
	return optional(&d)
}

func optional(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
