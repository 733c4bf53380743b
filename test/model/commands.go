package model

import "slices"

// Codes of refusals; "" means done.
const (
	impossible = "PW021"
	keyTaken   = "PW022"
)

// Cancel ends an open task.
func (w *World) Cancel(id int) string {
	switch t := w.Tasks[id]; {
	case t.State == "cancelled":
	case final(t.State):
		return impossible
	default:
		w.cut(id, "cancelled")
	}
	return ""
}

// ResolveTask declares a task done.
func (w *World) ResolveTask(id int) string {
	switch t := w.Tasks[id]; {
	case t.State == "resolved_manually":
	case t.State == "complete":
		return impossible
	case final(t.State):
		w.end(id, "resolved_manually")
	default:
		w.cut(id, "resolved_manually")
	}
	return ""
}

// reopen opens an ended task again, if it may be.
func (w *World) reopen(id int) string {
	t := w.Tasks[id]
	switch {
	case !final(t.State):
		return ""
	case t.State == "complete" || t.State == "resolved_manually":
		return impossible
	}
	if i := w.Identities[t.Key]; i != nil {
		if i.Task != id {
			return keyTaken
		}
		i.Status = "running"
	}
	t.State, t.Due = "enqueuing_steps", none
	if t.Template.Timeout > 0 {
		t.Due = w.Now + t.Template.Timeout
	}
	return ""
}

// reset makes steps begin again.
func (t *Task) reset(steps []int) {
	for _, i := range steps {
		s := &t.Steps[i]
		s.State, s.Due, s.Result, s.Cause, s.Failures, s.Held = "pending", none, "", "", 0, false
	}
}

// RetryTask runs failed steps again; from a step on when from >= 0.
func (w *World) RetryTask(id, from int) string {
	t := w.Tasks[id]
	var steps []int
	if from >= 0 {
		if open(t.Steps[from].State) {
			return impossible
		}
		steps = t.descendants(from)
	} else {
		for i, s := range t.Steps {
			if s.State == "error" || s.State == "cancelled" {
				steps = append(steps, i)
			}
		}
		if len(steps) == 0 && !final(t.State) {
			return impossible
		}
	}
	return w.again(id, from, func(t *Task) { t.reset(steps) })
}

// again lets a task go on after a reset of its steps, unless step, when >= 0, is cancelled again at once.
func (w *World) again(id, step int, reset func(*Task)) string {
	t := w.Tasks[id]
	task, steps, messages := *t, slices.Clone(t.Steps), slices.Clone(w.Messages)
	var key Identity
	identity := w.Identities[t.Key]
	if identity != nil {
		key = *identity
	}
	if refusal := w.reopen(id); refusal != "" {
		return refusal
	}
	reset(t)
	w.settle(id)
	if step < 0 || t.Steps[step].State != "cancelled" {
		return ""
	}
	*t, t.Steps, w.Messages = task, steps, messages
	if identity != nil {
		*identity = key
	}
	return impossible
}

// revive resets what the failure of a step had cancelled.
func (t *Task) revive(step int) {
	below := t.descendants(step)
	other := slices.ContainsFunc(indexed(t.Steps), func(i int) bool { return i != step && t.Steps[i].State == "error" })
	var steps []int
	for i, s := range t.Steps {
		if i != step && s.State == "cancelled" &&
			(s.Cause == "dependency_failed" && slices.Contains(below, i) || s.Cause == "fail_fast" && !other) {
			steps = append(steps, i)
		}
	}
	t.reset(steps)
}

func indexed(steps []Step) []int {
	all := make([]int, len(steps))
	for i := range all {
		all[i] = i
	}
	return all
}

// RetryStep runs one failed step again.
func (w *World) RetryStep(id, step int) string {
	t := w.Tasks[id]
	if !slices.Contains([]string{"error", "cancelled", "waiting_for_retry"}, t.Steps[step].State) {
		return impossible
	}
	return w.again(id, step, func(t *Task) {
		t.revive(step)
		t.reset([]int{step})
	})
}

// EndStep ends a step by hand: complete with a value, or resolved_manually.
func (w *World) EndStep(id, step int, state, value string) string {
	t := w.Tasks[id]
	s := &t.Steps[step]
	switch {
	case s.State == state && s.Result == value:
		return ""
	case satisfied(s.State), t.State == "cancelled", t.State == "timed_out", t.State == "pending":
		return impossible
	}
	if refusal := w.reopen(id); refusal != "" {
		return refusal
	}
	t.revive(step)
	w.holdByHand(id, step)
	s.State, s.Due, s.Result, s.Cause, s.Held = state, none, value, "", false
	w.settle(id)
	return ""
}
