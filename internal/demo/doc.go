// Package demo is `pawl demo`: orders through two orchestrators and three workers, in Go, Python and TypeScript, each a
// process of its own, most of them killed in the middle, with proof from the tables at the end.
//
// Read demo.go from the top: it is the story. programs.go lists the processes. Everything that is proved stands in proof.go, and only the tables are asked.
package demo
