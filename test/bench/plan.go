package main

import "fmt"

// cell is one row of the table: an engine doing some work.
type cell struct {
	group string // what varies: shape, batch, payload, orchestrators, staged, one by one
	label string
	work  work
}

// baseLabel names the cell of the base case, which is compared with the limit.
const baseLabel = "diamond"

func baseWork() work { return work{Shape: "diamond", Payload: 200, Batch: 50, Orchestrators: 2} }

// plan varies one factor at a time around the base case. short is what `make bench` runs.
func plan(short bool) []cell {
	cells := []cell{}
	add := func(group, label string, change func(*work)) {
		w := baseWork()
		change(&w)
		cells = append(cells, cell{group: group, label: label, work: w})
	}
	for _, shape := range []string{"chain", "diamond", "single"} {
		add("shape", shape, func(w *work) { w.Shape = shape })
	}
	if short {
		add("shape", "diamond, batch 200", func(w *work) { w.Batch = 200 })
		return cells
	}
	for _, shape := range []string{"fan20", "fan1000", "chain500"} {
		add("shape", shape, func(w *work) { w.Shape = shape })
	}
	for _, batch := range []int{1, 10, 200} {
		add("batch", fmt.Sprintf("diamond, batch %d", batch), func(w *work) { w.Batch = batch })
	}
	add("batch", "single, batch 200", func(w *work) { w.Shape, w.Batch = "single", 200 })
	add("payload", "diamond, 10 kB", func(w *work) { w.Payload = 10_000 })
	for _, n := range []int{1, 3} {
		add("orchestrators", fmt.Sprintf("diamond, %d orchestrators", n), func(w *work) { w.Orchestrators = n })
	}
	add("staged", "diamond, every hop through its queue", func(w *work) { w.Staged = true })
	add("beside", "diamond, beside others' gates, keys and claims", func(w *work) { w.Beside = true })
	for _, shape := range []string{"single", "chain", "diamond"} {
		add("one by one", shape+", 32 in flight that return one by one", func(w *work) { w.Shape, w.InFlight = shape, 32 })
	}
	add("one by one", "single, 32 in flight that return one by one, with keys", func(w *work) { w.Shape, w.InFlight, w.Keys = "single", 32, true })
	return cells
}

// turn is one engine at one cell.
type turn struct {
	engine engine
	cell   cell
}

// turns of a round. Pawl comes first; at the base case the limit, with which that is compared, is measured right before and
// right after it, for the machine's speed drifts within a minute.
func turns(engines []engine, cells []cell) []turn {
	var all []turn
	for _, c := range cells {
		first := []turn{{engines[0], c}}
		if c.label == baseLabel {
			first = []turn{{&rawPGMQ{}, limit}, first[0], {&rawPGMQ{}, limit}}
		}
		all = append(all, first...)
		for _, e := range engines[1:] {
			all = append(all, turn{e, c})
		}
	}
	return all
}

// payload is text of about n bytes that compresses like words.
func payload(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + (i*7+i/13)%26)
	}
	return string(b)
}
