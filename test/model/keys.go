package model

import (
	"fmt"
	"strings"
	"time"
)

// Hold of a step's key: by a step that runs, or, once it is done, until a time.
type Hold struct {
	Task, Step int
	Done       bool
	Until      time.Duration
}

// day is long.
const day = 24 * time.Hour

// key of a step that has one; false when its task's input lacks a value for it.
func (t *Task) key(step int) (string, bool) {
	key := t.Template.Steps[step].Key
	if strings.Contains(key, "%s") {
		return strings.ReplaceAll(key, "%s", t.Input), t.Input != "" || key != "%s"
	}
	return key, true
}

// holder of a key: nobody when its step failed, was cancelled or began again, or when the time of its completion is over.
func (w *World) holder(key string) *Hold {
	h := w.Keys[key]
	if h == nil || w.Tasks[h.Task].Gone {
		return nil
	}
	switch t := w.Tasks[h.Task]; {
	case satisfied(t.Steps[h.Step].State):
		if !h.Done {
			h.Done, h.Until = true, w.Now+t.Template.Window
		}
		if h.Until > w.Now {
			return h
		}
	case active(t.Steps[h.Step].State) || t.Steps[h.Step].State == "waiting_for_retry" || t.Steps[h.Step].Held:
		return h
	}
	return nil
}

// holdByHand gives the key of a step that a person ends to this step, unless another one holds it.
func (w *World) holdByHand(id, step int) {
	t := w.Tasks[id]
	if key, ok := t.key(step); ok && key != "" && w.holder(key) == nil {
		w.Keys[key] = &Hold{Task: id, Step: step}
	}
}

// take completes a step with the result of one that is done.
func (w *World) take(s *Step, from *Hold) {
	s.State, s.Waits, s.Result, s.Cause = "complete", nil, w.Tasks[from.Task].Steps[from.Step].Result, ""
}

// attach gives the waiting and the ready steps of a task what their keys say: an error, a result, or a wait. Tells whether a
// step ended.
func (w *World) attach(t *Task) bool {
	ended := false
	for i := range t.Steps {
		s := &t.Steps[i]
		if key, _ := t.key(i); s.State == "waiting" {
			if w.holder(key); s.Waits.Done {
				w.take(s, s.Waits)
				ended = true
			}
			continue
		}
		if !s.ready() || t.Template.Steps[i].Key == "" {
			continue
		}
		key, ok := t.key(i)
		switch h := w.holder(key); {
		case !ok:
			s.State, s.Cause = "error", "key_missing"
		case h == nil:
			continue
		case h.Done:
			w.take(s, h)
		default:
			s.State, s.Waits = "waiting", h
			continue
		}
		ended = true
	}
	return ended
}

// Turn lets everybody go on who can: who waited for a step that is done has its result, and of those whose key is free one
// has it, and the gate opens. Which one of equals is not promised: holds and runs tell.
func (w *World) Turn(holds, runs func(task, step int) bool) {
	for id := range w.Tasks {
		w.settle(id)
	}
	for w.serve() || w.giveKey(holds) || w.openGate(runs) {
	}
}

// serve gives results to those who waited for them. Tells whether there were any.
func (w *World) serve() bool {
	for key := range w.Keys {
		w.holder(key) // is it done?
	}
	served := false
	for id, t := range w.Tasks {
		for i := range t.Steps {
			s := &t.Steps[i]
			if s.State != "waiting" {
				continue
			}
			key, _ := t.key(i)
			if h := w.holder(key); !s.Waits.Done && h != nil {
				s.Waits = h
			}
			if s.Waits.Done {
				w.take(s, s.Waits)
				served = true
			}
		}
		w.settle(id)
	}
	return served
}

// giveKey gives one free key to one of those who want it, the others wait. Tells whether there was one.
func (w *World) giveKey(holds func(task, step int) bool) bool {
	var free string
	var want [][2]int
	for id, t := range w.Tasks {
		for i, s := range t.Steps {
			ready := s.ready() && t.State != "pending" && !final(t.State) && t.Template.Steps[i].Key != ""
			if key, _ := t.key(i); (ready || s.State == "waiting") && w.holder(key) == nil && (free == "" || free == key) {
				free = key
				want = append(want, [2]int{id, i})
			}
		}
	}
	if len(want) == 0 {
		return false
	}
	next := choose(want, holds)
	h := &Hold{Task: next[0], Step: next[1]}
	w.Keys[free] = h
	for _, one := range want {
		s := &w.Tasks[one[0]].Steps[one[1]]
		if one != next {
			s.State, s.Waits = "waiting", h
			continue
		}
		s.Waits = nil
		w.start(one[0], one[1])
	}
	for _, one := range want {
		w.settle(one[0])
	}
	return true
}

// Sweep forgets the tasks whose retention is over, which is a minute at least.
func (w *World) Sweep() {
	for _, t := range w.Tasks {
		if final(t.State) && t.Ended+max(t.Template.Retention, time.Minute) <= w.Now {
			t.Gone = true
		}
	}
}

// describeKeys writes down who holds and who waits.
func (w *World) describeKeys() []string {
	var lines []string
	for key := range w.Keys {
		if h := w.holder(key); h != nil {
			until := none
			if h.Done {
				until = h.Until
			}
			lines = append(lines, fmt.Sprintf("step key %s of %02d s%d until %s", key, h.Task, h.Step, at(until)))
		}
	}
	for id, t := range w.Tasks {
		for i, s := range t.Steps {
			if key, _ := t.key(i); s.State == "waiting" {
				lines = append(lines, fmt.Sprintf("%02d s%d waits for %s", id, i, key))
			}
		}
	}
	return lines
}
