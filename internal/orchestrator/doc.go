// Package orchestrator wires a process that moves tasks: pools, listener, actors, HTTP. It is what cmd/orchestrator,
// `pawl dev` and tests start; any number may run on one database.
package orchestrator
