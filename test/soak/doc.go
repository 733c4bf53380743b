// Command soak sets a cluster on fire for minutes or hours, Postgres itself included, and prints what held.
//
//	make soak DURATION=1h SEED=1        a plan drawn from a seed; the plan is written before it runs
//	make replay PLAN=soak-1.jsonl       the same plan again
//
// The fire burns in rounds. After each, faults end, everything must settle, and all invariants, the handlers' ledger and the
// clients' history are compared. Every third round ends with all but one orchestrator and one worker broken: what is left
// must go on. It exits with 1 when something did not hold, or when a situation it exists to reach never occurred.
//
// A plan is repeated exactly; what the processes were doing at that moment is not.
package main
