// Package demo is `pawl demo`: orders through two orchestrators and two workers, each a process of its own, some of them
// killed in the middle, with proof from the tables at the end.
//
// Read demo.go from the top: it is the story. Everything that is proved stands in proof.go, and only the tables are asked.
package demo
