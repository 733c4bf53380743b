// Package sandbox runs a private Postgres with PGMQ and Pawl's SQL, and an orchestrator on it: what tests of workers in
// any language need.
package sandbox
