package model

import (
	"slices"
	"time"
)

// Template is a DAG with its policies.
type Template struct {
	Name      string
	OnFailure string
	Timeout   time.Duration // 0: none
	Steps     []StepTemplate
}

// StepTemplate is one node; Needs are indexes of earlier steps.
type StepTemplate struct {
	Name          string
	Needs         []int
	MaxAttempts   int
	Backoff       string
	Base          time.Duration
	MaxDeliveries int
	Timeout       time.Duration
}

// Step of a task.
type Step struct {
	State     string
	Attempt   int
	Failures  int
	NeedsOpen int
	Due       time.Duration // of the virtual clock; -1: none
	Result    string
	Cause     string // type of its error
}

// Task is one run.
type Task struct {
	Template *Template
	Key      string
	Epoch    int
	State    string
	Due      time.Duration
	Steps    []Step
}

// Message of the step queue.
type Message struct {
	ID            int64 // of the real queue, once seen
	Task, Step    int
	Attempt, Read int
	Visible       bool
}

// Identity of a key.
type Identity struct {
	Task   int
	Status string
	Epoch  int
}

// World is everything.
type World struct {
	Now        time.Duration
	Templates  []*Template
	Tasks      []*Task
	Messages   []*Message
	Identities map[string]*Identity
	Absorbed   int
	Dead       int
}

const none = time.Duration(-1)

// New makes an empty world.
func New(templates ...*Template) *World {
	return &World{Templates: templates, Identities: map[string]*Identity{}}
}

func final(state string) bool {
	return slices.Contains([]string{"complete", "error", "cancelled", "timed_out", "resolved_manually"}, state)
}

func open(state string) bool {
	return slices.Contains([]string{"pending", "enqueued", "in_progress", "waiting_for_retry"}, state)
}

func satisfied(state string) bool { return state == "complete" || state == "resolved_manually" }

func active(state string) bool { return state == "enqueued" || state == "in_progress" }

func status(state string) string {
	switch state {
	case "complete", "resolved_manually":
		return "completed"
	case "error":
		return "failed"
	case "cancelled", "timed_out":
		return state
	}
	return "running"
}

// Counters of a task's steps: open, active, held, retrying, failed.
func (t *Task) Counters() (counts [5]int) {
	for _, s := range t.Steps {
		for i, holds := range []bool{open(s.State), active(s.State), s.State == "pending" && s.NeedsOpen == 0,
			s.State == "waiting_for_retry", s.State == "error" || s.State == "cancelled"} {
			if holds {
				counts[i]++
			}
		}
	}
	return counts
}

// start begins the next attempt of a step.
func (w *World) start(task, step int) {
	s := &w.Tasks[task].Steps[step]
	s.State, s.Due = "enqueued", none
	s.Attempt++
	w.Messages = append(w.Messages, &Message{Task: task, Step: step, Attempt: s.Attempt, Visible: true})
}

// settle brings an open task to rest.
func (w *World) settle(id int) {
	t := w.Tasks[id]
	if final(t.State) || t.State == "pending" {
		return
	}
	t.cancelUnreachable()
	for i := range t.Steps {
		s := &t.Steps[i]
		if s.State != "pending" {
			continue
		}
		s.NeedsOpen = 0
		for _, need := range t.Template.Steps[i].Needs {
			if !satisfied(t.Steps[need].State) {
				s.NeedsOpen++
			}
		}
		if s.NeedsOpen == 0 {
			w.start(id, i)
		}
	}
	counts := t.Counters()
	switch opened, working, retrying, failed := counts[0], counts[1], counts[3], counts[4]; {
	case t.Template.OnFailure == "hold" && failed > 0 && working+retrying == 0:
		t.State = "blocked_by_failures"
	case working > 0:
		t.State = "steps_in_process"
	case retrying > 0:
		t.State = "waiting_for_retry"
	case opened > 0:
		t.State = "stuck"
	case failed > 0:
		w.end(id, "error")
	default:
		w.end(id, "complete")
	}
}

// cancelUnreachable applies the failure policy.
func (t *Task) cancelUnreachable() {
	if t.Template.OnFailure == "fail_fast" && slices.ContainsFunc(t.Steps, func(s Step) bool { return s.State == "error" }) {
		for i := range t.Steps {
			if open(t.Steps[i].State) {
				t.Steps[i].cancel("fail_fast")
			}
		}
	}
	if t.Template.OnFailure == "hold" {
		return
	}
	for i := range t.Steps { // in topological order
		for _, need := range t.Template.Steps[i].Needs {
			if parent := t.Steps[need].State; t.Steps[i].State == "pending" && (parent == "error" || parent == "cancelled") {
				t.Steps[i].cancel("dependency_failed")
			}
		}
	}
}

func (s *Step) cancel(cause string) { s.State, s.Due, s.Cause = "cancelled", none, cause }

// end makes a task final.
func (w *World) end(id int, state string) {
	t := w.Tasks[id]
	t.State, t.Due = state, none
	if i := w.Identities[t.Key]; i != nil && i.Task == id {
		i.Status = status(state)
	}
}

// cut ends an open task before its steps are done.
func (w *World) cut(id int, state string) {
	t := w.Tasks[id]
	for i := range t.Steps {
		if open(t.Steps[i].State) {
			t.Steps[i].cancel("task_" + state)
		}
	}
	w.end(id, state)
}

// descendants of a step, itself included.
func (t *Task) descendants(step int) []int {
	found := []int{step}
	for i := step + 1; i < len(t.Steps); i++ {
		if slices.ContainsFunc(t.Template.Steps[i].Needs, func(need int) bool { return slices.Contains(found, need) }) {
			found = append(found, i)
		}
	}
	return found
}
