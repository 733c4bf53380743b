package model

import (
	"maps"
	"slices"
	"time"
)

// Request for a task.
type Request struct {
	Template int
	Key      string
	Input    string
	StartAt  time.Duration
	Reject   bool
}

// Submit creates a task, or meets the holder of its key. Returns created, attached or rejected.
func (w *World) Submit(r Request) string {
	t := &Task{Template: w.Templates[r.Template], Input: r.Input, State: "enqueuing_steps", Due: none, Epoch: 1}
	id := len(w.Tasks)
	if r.Key != "" {
		t.Key = t.Template.Name + "/" + r.Key
		holder := w.Identities[t.Key]
		switch {
		case holder == nil:
		case slices.Contains([]string{"failed", "cancelled", "timed_out"}, holder.Status):
			t.Epoch = holder.Epoch + 1
		default:
			w.Absorbed++
			if r.Reject {
				return "rejected"
			}
			return "attached"
		}
		w.Identities[t.Key] = &Identity{Task: id, Status: "running", Epoch: t.Epoch}
	}
	for _, s := range t.Template.Steps {
		t.Steps = append(t.Steps, Step{State: "pending", NeedsOpen: len(s.Needs), Due: none})
	}
	w.Tasks = append(w.Tasks, t)
	if r.StartAt > w.Now {
		t.State, t.Due = "pending", r.StartAt
		return "created"
	}
	if t.Template.Timeout > 0 {
		t.Due = w.Now + t.Template.Timeout
	}
	w.settle(id)
	return "created"
}

// Claim reads visible messages, oldest first, and begins what is current; when nothing of a full read is, it reads on. Returns
// their messages.
func (w *World) Claim(quantity int) []*Message {
	slices.SortFunc(w.Messages, func(a, b *Message) int { return int(a.ID - b.ID) })
	var begun, ended []*Message
	read := quantity
	if w.Paused {
		return nil
	}
	for round := 0; round < 20 && len(begun) == 0 && read == quantity; round++ {
		read = 0
		for _, m := range slices.Clone(w.Messages) {
			if !m.Visible || read == quantity {
				continue
			}
			read++
			m.Visible = false
			m.Read++
			t := w.Tasks[m.Task]
			s, limits := &t.Steps[m.Step], t.Template.Steps[m.Step]
			switch {
			case t.Gone || s.Attempt != m.Attempt || !active(s.State):
				w.remove(m)
				w.Absorbed++
			case m.Read > limits.MaxDeliveries:
				w.remove(m)
				ended = append(ended, m)
			default:
				if s.State == "enqueued" && limits.Timeout > 0 {
					s.Due = w.Now + limits.Timeout
				}
				s.State = "in_progress"
				begun = append(begun, m)
			}
		}
	}
	var crashes []Result
	for _, m := range ended {
		crashes = append(crashes, Result{Task: m.Task, Step: m.Step, Attempt: m.Attempt, Status: "failed", Retryable: true, After: none, Cause: "crash"})
	}
	w.Apply(crashes...)
	return begun
}

func (w *World) remove(m *Message) {
	w.Messages = slices.DeleteFunc(w.Messages, func(other *Message) bool { return other == m })
}

// Held finds the message that a fence names.
func (w *World) Held(id int64, read int) *Message {
	for _, m := range w.Messages {
		if m.ID == id && m.Read == read {
			return m
		}
	}
	return nil
}

// Result is the end of one attempt. After -1: the step's back-off.
type Result struct {
	Task, Step, Attempt int
	Status              string
	Value               string
	Retryable           bool
	After               time.Duration
	Cause               string
}

// Report hands in a result under its fence; tells whether it was accepted: a late one is absorbed.
func (w *World) Report(id int64, read int, r Result) bool {
	counted, accepted := w.handIn(id, read, r)
	w.Apply(counted...)
	return accepted
}

// handIn takes the message that a fence names; gives the result to apply, and whether it is accepted.
func (w *World) handIn(id int64, read int, r Result) (counted []Result, accepted bool) {
	m := w.Held(id, read)
	if m == nil {
		return nil, false
	}
	w.remove(m)
	r.Task, r.Step, r.Attempt = m.Task, m.Step, m.Attempt
	t := w.Tasks[m.Task]
	if t.Gone {
		w.Absorbed++
		return nil, false
	}
	s := t.Steps[m.Step]
	return []Result{r}, s.Attempt == m.Attempt && active(s.State)
}

// Extend tells what a heartbeat hears.
func (w *World) Extend(id int64, read int) string {
	m := w.Held(id, read)
	if m == nil {
		return "lost"
	}
	m.Visible = false
	if s := w.Tasks[m.Task].Steps[m.Step]; s.State == "in_progress" && s.Attempt == m.Attempt {
		return "extended"
	}
	return "cancelled"
}

// Apply lets results meet their steps, and then the tasks follow: of results that arrive together each counts, though one of
// them may end its task. What follows a completed step begins before that, unless each hop has its queue.
func (w *World) Apply(results ...Result) {
	met := map[int]bool{}
	for _, r := range results {
		if w.meet(r) {
			met[r.Task] = true
		}
	}
	for _, r := range results {
		if met[r.Task] && r.Status == "complete" && !w.Staged {
			w.Tasks[r.Task].countNeeds()
			w.startReady(r.Task, r.Step)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(met)) {
		w.settle(id)
	}
}

// meet lets a result meet its step; tells whether it counted.
func (w *World) meet(r Result) bool {
	t := w.Tasks[r.Task]
	s, limits := &t.Steps[r.Step], t.Template.Steps[r.Step]
	switch {
	case t.Gone || r.Attempt > s.Attempt:
		w.Dead++
		return false
	case r.Attempt < s.Attempt || !active(s.State):
		w.Absorbed++
		return false
	case r.Status == "complete":
		s.State, s.Due, s.Result, s.Cause = "complete", none, r.Value, ""
	default:
		s.Failures++
		s.State, s.Due, s.Cause = "error", none, r.Cause
		if r.Status == "failed" && r.Retryable && s.Failures < limits.MaxAttempts {
			s.State, s.Due = "waiting_for_retry", w.Now+limits.delay(s.Failures, r.After)
		}
	}
	return true
}

func (l StepTemplate) delay(failures int, after time.Duration) time.Duration {
	switch {
	case after >= 0:
		return after
	case l.Backoff == "fixed":
		return l.Base
	case l.Backoff == "linear":
		return l.Base * time.Duration(failures)
	case l.Backoff == "exponential":
		return l.Base << (failures - 1)
	}
	return 0
}

// Fire does what is due: deadlines and starts of tasks, then timeouts of attempts, those of one task together, so that
// fail_fast finds none of them open; then retries.
func (w *World) Fire() {
	due := func(at time.Duration) bool { return at >= 0 && at <= w.Now }
	for id, t := range w.Tasks {
		switch {
		case !due(t.Due):
		case t.State == "pending":
			t.State, t.Due = "enqueuing_steps", none
			if t.Template.Timeout > 0 {
				t.Due = w.Now + t.Template.Timeout
			}
			w.settle(id)
		default:
			w.cut(id, "timed_out")
		}
	}
	for id, t := range w.Tasks {
		var late []Result
		for i, s := range t.Steps {
			if due(s.Due) && active(s.State) {
				late = append(late, Result{Task: id, Step: i, Attempt: s.Attempt, Status: "failed", Retryable: true, After: none, Cause: "timeout"})
			}
		}
		w.Apply(late...)
	}
	for id, t := range w.Tasks {
		for i := range t.Steps {
			if s := &t.Steps[i]; due(s.Due) && s.State == "waiting_for_retry" {
				w.start(id, i)
			}
		}
		w.settle(id)
	}
}
