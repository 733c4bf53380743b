// Package cluster runs the real binaries on a real Postgres, each process behind a proxy of its own, sends work through
// them, breaks what can be broken, and judges what is left.
//
//	Stage    the processes: orchestrators, workers, their proxies; PgBouncer before some of them
//	Load     clients that submit, repeat, read and cancel, and note every call with its outcome
//	Ledger   what the handlers did, in a file that no fault reaches
//	Plan     which faults strike, when and where: made of a seed, printed before it runs, run again from its file
//	Fire     the plan at work
//	Verdict  invariants, ledger and history compared when all is over
//
// The tests are the seeds' scenarios and a minute of fire; command test/soak does the same for hours.
package cluster
