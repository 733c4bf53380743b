package model

import (
	"cmp"
	"fmt"
	"slices"
)

func (w *World) gated() bool { return w.Limit > 0 || w.Paused }

// start begins the next attempt of a step, or puts it behind the gate.
func (w *World) start(task, step int) {
	s := &w.Tasks[task].Steps[step]
	if !w.gated() {
		w.release(task, step)
		return
	}
	s.State, s.Due = "pending", none
	if !s.Held {
		s.Held, s.HeldAt = true, w.Now
	}
}

// release begins the next attempt of a step.
func (w *World) release(task, step int) {
	s := &w.Tasks[task].Steps[step]
	s.State, s.Due, s.Held = "enqueued", none, false
	s.Attempt++
	w.Messages = append(w.Messages, &Message{Task: task, Step: step, Attempt: s.Attempt, Visible: true})
}

// openGate releases one held step if it may: first attempts before retries, then the oldest; of equals runs tells. Tells
// whether there was one.
func (w *World) openGate(runs func(task, step int) bool) bool {
	var held [][2]int
	busy := 0
	for id, t := range w.Tasks {
		for i, s := range t.Steps {
			if s.Held {
				held = append(held, [2]int{id, i})
			} else if active(s.State) {
				busy++
			}
		}
	}
	if len(held) == 0 || w.Paused || (w.Limit > 0 && busy >= w.Limit) {
		return false
	}
	order := func(a, b [2]int) int {
		s, o := w.Tasks[a[0]].Steps[a[1]], w.Tasks[b[0]].Steps[b[1]]
		return cmp.Or(min(s.Attempt, 1)-min(o.Attempt, 1), int(s.HeldAt-o.HeldAt))
	}
	first := slices.MinFunc(held, order)
	equals := slices.DeleteFunc(held, func(one [2]int) bool { return order(one, first) != 0 })
	next := choose(equals, runs)
	w.release(next[0], next[1])
	w.settle(next[0])
	return true
}

// choose takes the one that runs tells, else the first.
func choose(equals [][2]int, runs func(task, step int) bool) [2]int {
	if len(equals) > 1 {
		if i := slices.IndexFunc(equals, func(one [2]int) bool { return runs(one[0], one[1]) }); i >= 0 {
			return equals[i]
		}
	}
	return equals[0]
}

// describeGate writes down what it holds.
func (w *World) describeGate() []string {
	var lines []string
	for id, t := range w.Tasks {
		for i, s := range t.Steps {
			if s.Held {
				lines = append(lines, fmt.Sprintf("%02d s%d held since %s", id, i, at(s.HeldAt)))
			}
		}
	}
	return lines
}
