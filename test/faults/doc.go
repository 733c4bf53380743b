// Package faults is a proxy for tests: it stands between a program and a real Postgres, understands enough of the protocol
// to know where requests, replies and transactions begin and end, and breaks the conversation there.
//
// What it can do: cut connections, keep everything back (a black hole), delay, lose a request before the server has it,
// swallow the reply of a request that the server has worked (a COMMIT, or any other), leave listeners half open, drop
// notifications. What is left to chance comes from a seed.
package faults
