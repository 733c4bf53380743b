package main

import (
	"bytes"
	"strconv"
	"strings"
)

// node is a step of a graph; it stands after all that it needs.
type node struct {
	Name  string   `json:"name"`
	Needs []string `json:"needs"`
}

// graphOf gives the steps of a shape.
func graphOf(shape string) []node {
	n := work{Shape: shape}.steps()
	name := func(i int) string { return "s" + strconv.Itoa(i) }
	graph := []node{{Name: name(0), Needs: []string{}}}
	switch shape {
	case "single":
	case "diamond":
		graph = append(graph, node{"s1", []string{"s0"}}, node{"s2", []string{"s0"}}, node{"s3", []string{"s1", "s2"}})
	case "chain", "chain500":
		for i := 1; i < n; i++ {
			graph = append(graph, node{name(i), []string{name(i - 1)}})
		}
	default: // a fan: one, many, one
		var all []string
		for i := 1; i < n-1; i++ {
			graph = append(graph, node{name(i), []string{name(0)}})
			all = append(all, name(i))
		}
		graph = append(graph, node{name(n - 1), all})
	}
	return graph
}

// templateOf writes the template of a shape: every step of it on one queue.
func templateOf(name, shape, queue string) []byte {
	var b bytes.Buffer
	b.WriteString("namespace: bench\nname: " + name + "\nsteps:\n")
	for _, n := range graphOf(shape) {
		b.WriteString("  - {name: " + n.Name + ", handler: bench.noop, queue: " + queue + ", needs: [" + strings.Join(n.Needs, ", ") + "]}\n")
	}
	return b.Bytes()
}
