package config

import (
	"maps"
	"regexp"
	"slices"

	"github.com/pawl-dev/pawl/messaging"
	"github.com/pawl-dev/pawl/workflow"
)

// Queue is a [queues.NAME] section. What is nil was not said.
type Queue struct {
	Retention      *string // of its one-step tasks, a duration; "0": until the next sweep
	RateLimit      *string // "100/sec", "6000/min" or "100/hour"
	Burst          *int64  // releases at once; not said: what the limit allows
	MaxConcurrency *int64  // attempts at a time
	Paused         *bool
}

// Template is a [templates."namespace/name"] section. What is nil was not said.
type Template struct {
	Retention  *string           // a duration; "0": until the next sweep
	StuckAfter map[string]string // durations by state
}

// Settings is what pawl.configure_queue takes: null for what the file does not say, so that applying another file leaves
// nothing behind; but a pause that the file does not mention is an operator's, and stays.
func (q Queue) Settings() map[string]any {
	settings := map[string]any{"retention": q.Retention, "rate_limit": q.RateLimit, "burst": q.Burst,
		"max_concurrency": q.MaxConcurrency}
	if q.Paused != nil {
		settings["paused"] = q.Paused
	}
	return settings
}

// Settings is what pawl.configure_template takes: as for queues.
func (t Template) Settings() map[string]any {
	settings := map[string]any{"retention": t.Retention, "stuck_after": nil}
	if len(t.StuckAfter) > 0 {
		settings["stuck_after"] = t.StuckAfter
	}
	return settings
}

func (r *reader) queues(table map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		s, ok := r.section("queues", name, table[name])
		if !ok {
			continue
		}
		if err := messaging.ValidateStepQueueName(name); err != nil {
			s.wrong(s.key, "%s", err)
		}
		s.only("retention", "rate_limit", "burst", "max_concurrency", "paused")
		q := Queue{Retention: s.duration("retention"), RateLimit: s.rate(), Burst: s.count("burst"),
			MaxConcurrency: s.count("max_concurrency"), Paused: s.yes("paused")}
		if q.Burst != nil && q.RateLimit == nil {
			s.wrong(s.key+".burst", "says nothing without rate_limit: add one, or take it out")
		}
		r.file.Queues[name] = q
	}
}

func (r *reader) templates(table map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(table)) {
		s, ok := r.section("templates", name, table[name])
		if !ok {
			continue
		}
		if ref, err := messaging.ParseTemplateRef(name); err != nil || ref.Version != "" {
			s.wrong(s.key, `write [templates."namespace/name"], without a version: it is for all of them`)
		}
		s.only("retention", "stuck_after")
		r.file.Templates[name] = Template{Retention: s.duration("retention"), StuckAfter: s.stuckAfter()}
	}
}

func (s section) duration(name string) *string {
	value, ok := s.fields[name]
	if !ok {
		return nil
	}
	return s.parsedDuration(s.key+"."+name, value)
}

func (s section) parsedDuration(key string, value any) *string {
	text, ok := value.(string)
	if !ok {
		s.wrong(key, `write a duration in quotes, as in "7d"`)
		return nil
	}
	if _, err := workflow.ParseDuration(text); err != nil {
		s.wrong(key, "%s", err)
		return nil
	}
	return &text
}

func (s section) stuckAfter() map[string]string {
	value, ok := s.fields["stuck_after"]
	if !ok {
		return nil
	}
	table, ok := value.(map[string]any)
	if !ok {
		s.wrong(s.key+".stuck_after", `write durations by state, as in { waiting_for_retry = "1h" }`)
		return nil
	}
	after := make(map[string]string)
	for _, state := range slices.Sorted(maps.Keys(table)) {
		if text := s.parsedDuration(s.key+".stuck_after."+state, table[state]); text != nil {
			after[state] = *text
		}
	}
	return after
}

// ratePattern as the database reads it.
var ratePattern = regexp.MustCompile(`^[1-9][0-9]{0,8}\s*/\s*(s|sec|second|m|min|minute|h|hour)$`)

func (s section) rate() *string {
	value, ok := s.fields["rate_limit"]
	if !ok {
		return nil
	}
	text, _ := value.(string)
	if ratePattern.MatchString(text) {
		return &text
	}
	s.wrong(s.key+".rate_limit", `write a number of 1 or more per sec, min or hour, as in "100/sec"`)
	return nil
}

func (s section) count(name string) *int64 {
	value, ok := s.fields[name]
	if !ok {
		return nil
	}
	n, ok := value.(int64)
	if !ok || n < 1 || n > 1<<31-1 {
		s.wrong(s.key+"."+name, "write a whole number of 1 or more")
		return nil
	}
	return &n
}

func (s section) yes(name string) *bool {
	value, ok := s.fields[name]
	if !ok {
		return nil
	}
	on, ok := value.(bool)
	if !ok {
		s.wrong(s.key+"."+name, "write true or false")
		return nil
	}
	return &on
}
