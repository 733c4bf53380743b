// Package store calls the SQL functions that the orchestrator lives on, one Go function for each, grouped by who calls
// them. It decides nothing: sets and states are SQL's, delivery and retries are the actors'. The one rule that lives
// here is what an error says about a message ([Classify]).
//
// Every function takes a context and a [DB] first. What the functions return holds ids, counts and outcomes; payloads
// stay in the database, the body of a task request excepted, because it is checked in Go.
package store
