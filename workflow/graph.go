package workflow

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"
)

// order looks the needs up and returns the steps in topological order; among
// those that could come next, the one declared first does. Unknown needs and
// cycles are noted.
func (d *decoder) order(drafts []*draft) []Step {
	d.lookUp(drafts)
	children := make([][]int, len(drafts))
	missing := make([]int, len(drafts)) // needs not placed yet
	var ready intHeap
	for i, s := range drafts {
		missing[i] = len(s.needs)
		for _, need := range s.needs {
			children[need.index] = append(children[need.index], i)
		}
		if missing[i] == 0 {
			ready = append(ready, i) // ascending, so already a heap
		}
	}
	number := make([]int, len(drafts))
	steps := make([]Step, 0, len(drafts))
	for len(ready) > 0 {
		i := heap.Pop(&ready).(int)
		s := drafts[i].Step
		s.No = len(steps)
		number[i] = s.No
		for _, need := range drafts[i].needs {
			s.Needs = append(s.Needs, Need{No: number[need.index], AcceptsSkipped: need.skipped})
		}
		slices.SortFunc(s.Needs, func(a, b Need) int { return a.No - b.No })
		steps = append(steps, s)
		for _, c := range children[i] {
			if missing[c]--; missing[c] == 0 {
				heap.Push(&ready, c)
			}
		}
	}
	if len(steps) < len(drafts) {
		d.cycles(drafts, missing)
	}
	return steps
}

// lookUp finds the steps that needs name. A need of an unknown one is noted and dropped.
func (d *decoder) lookUp(drafts []*draft) {
	index := make(map[string]int, len(drafts))
	names := make([]string, 0, len(drafts))
	for i, s := range drafts {
		if s.Name != "" {
			index[s.Name] = i
			names = append(names, s.Name)
		}
	}
	for _, s := range drafts {
		known := s.needs[:0]
		for _, need := range s.needs {
			at, ok := index[need.name]
			if !ok {
				d.fail(need.at, "step %s needs %s, which does not exist%s", s.Name, quote(need.name), d.suggest(need.name, names))
				continue
			}
			need.index = at
			known = append(known, need)
		}
		s.needs = known
	}
}

// cycles notes the cycles that keep steps from being ordered. Every step left
// needs another one that is left, so following the first such need runs in a circle.
func (d *decoder) cycles(drafts []*draft, missing []int) {
	walk := make([]int, len(drafts)) // the walk that saw a step, from 1
	for start := range drafts {
		if missing[start] == 0 || walk[start] != 0 {
			continue
		}
		var path []int
		at := start
		for walk[at] == 0 {
			walk[at] = start + 1
			path = append(path, at)
			needs := drafts[at].needs
			at = needs[slices.IndexFunc(needs, func(need draftNeed) bool { return missing[need.index] > 0 })].index
		}
		if walk[at] != start+1 {
			continue // led into a cycle noted before
		}
		cycle := path[slices.Index(path, at):]
		names := make([]string, 0, len(cycle)+1)
		for _, i := range append(cycle, at) {
			names = append(names, drafts[i].Name)
		}
		d.fail(drafts[at].at, "steps need each other in a cycle: %s", joinPath(names))
	}
}

// joinPath writes a path and leaves out the middle of a long one.
func joinPath(names []string) string {
	const shown = 20
	if len(names) > shown {
		cut := fmt.Sprintf("(%d more)", len(names)-shown)
		names = slices.Concat(names[:shown/2], []string{cut}, names[len(names)-shown/2:])
	}
	return strings.Join(names, " → ")
}

// intHeap pops the least number first.
type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push adds a number; see [heap.Interface].
func (h *intHeap) Push(x any) { *h = append(*h, x.(int)) }

// Pop removes the last number; see [heap.Interface].
func (h *intHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
