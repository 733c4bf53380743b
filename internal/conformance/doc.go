// Package conformance puts a worker of any language through its paces: it starts a private database and an orchestrator,
// runs the worker as a process, gives it steps of every kind, kills, freezes and stops it, and says what held.
//
// docs/conformance.md says what the worker has to offer: a queue, and handlers with known names. The files: run.go (the
// course of a run), check.go (what a check is), then the checks by what they speak of (messages.go, failures.go, life.go,
// outage.go),
// kit.go (their means), process.go (the worker's process), report.go (tables).
package conformance
