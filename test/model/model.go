package model

import (
	"fmt"
	"slices"
	"time"
)

// Template is a DAG with its policies.
type Template struct {
	Name      string
	OnFailure string
	Timeout   time.Duration // 0: none
	Window    time.Duration // how long a key outlives its step's completion
	Retention time.Duration // how long a task outlives its end
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
	Key           string // "": none; %s stands for the task's input
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
	Waits     *Hold  // of a waiting step: for whose result
	Held      bool   // by the gate
	HeldAt    time.Duration
}

// Task is one run.
type Task struct {
	Template *Template
	Key      string
	Input    string
	Epoch    int
	State    string
	Due      time.Duration
	Ended    time.Duration
	Gone     bool // swept
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
	Staged     bool // each hop has its queue
	Limit      int  // of attempts under way; 0: none
	Paused     bool // nothing is released or claimed
	Templates  []*Template
	Tasks      []*Task
	Messages   []*Message
	Identities map[string]*Identity
	Keys       map[string]*Hold // of steps
	Absorbed   int
	Dead       int
}

const none = time.Duration(-1)

// at writes a time down in milliseconds, - for none.
func at(due time.Duration) string {
	if due < 0 {
		return "-"
	}
	return fmt.Sprint(due.Milliseconds())
}

// New makes an empty world.
func New(templates ...*Template) *World {
	return &World{Templates: templates, Identities: map[string]*Identity{}, Keys: map[string]*Hold{}}
}

func final(state string) bool {
	return slices.Contains([]string{"complete", "error", "cancelled", "timed_out", "resolved_manually"}, state)
}

func open(state string) bool {
	return slices.Contains([]string{"pending", "enqueued", "in_progress", "waiting_for_retry", "waiting"}, state)
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

// Counters of a task's steps: open, active, held, retrying, waiting, failed.
func (t *Task) Counters() (counts [6]int) {
	for _, s := range t.Steps {
		for i, holds := range []bool{open(s.State), active(s.State), s.State == "pending" && s.NeedsOpen == 0,
			s.State == "waiting_for_retry", s.State == "waiting", s.State == "error" || s.State == "cancelled"} {
			if holds {
				counts[i]++
			}
		}
	}
	return counts
}

// startReady starts the ready steps without a key; those that need a step when needed >= 0.
func (w *World) startReady(id, needed int) {
	t := w.Tasks[id]
	for i, s := range t.Steps {
		if l := t.Template.Steps[i]; s.ready() && l.Key == "" && (needed < 0 || slices.Contains(l.Needs, needed)) {
			w.start(id, i)
		}
	}
}

// settle brings an open task to rest, but for steps whose key is free: they have their turn.
func (w *World) settle(id int) {
	t := w.Tasks[id]
	if final(t.State) || t.State == "pending" {
		return
	}
	for ended := true; ended; ended = w.attach(t) {
		t.cancelUnreachable()
		t.countNeeds()
	}
	w.startReady(id, -1)
	counts := t.Counters()
	switch opened, working, held, retrying, waiting, failed := counts[0], counts[1], counts[2], counts[3], counts[4], counts[5]; {
	case t.Template.OnFailure == "hold" && failed > 0 && working+held+retrying+waiting == 0:
		t.State = "blocked_by_failures"
	case working > 0:
		t.State = "steps_in_process"
	case held > 0:
		t.State = "enqueuing_steps"
	case retrying > 0:
		t.State = "waiting_for_retry"
	case waiting > 0:
		t.State = "waiting_for_dependencies"
	case opened > 0:
		t.State = "stuck"
	case failed > 0:
		w.end(id, "error")
	default:
		w.end(id, "complete")
	}
}

// countNeeds counts what pending steps still wait for.
func (t *Task) countNeeds() {
	for i := range t.Steps {
		s := &t.Steps[i]
		s.NeedsOpen = 0
		for _, need := range t.Template.Steps[i].Needs {
			if !satisfied(t.Steps[need].State) {
				s.NeedsOpen++
			}
		}
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

func (s *Step) cancel(cause string) {
	s.State, s.Due, s.Cause, s.Held = "cancelled", none, cause, false
}

// ready is a step that may begin.
func (s *Step) ready() bool { return s.State == "pending" && s.NeedsOpen == 0 && !s.Held }

// end makes a task final.
func (w *World) end(id int, state string) {
	t := w.Tasks[id]
	t.State, t.Due, t.Ended = state, none, w.Now
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
