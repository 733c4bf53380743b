// Package crash walks through every point between two statements of the engine's SQL functions. In a database of its own it
// replaces each function by a build that calls pawl_test.point after every statement (generated from the files, so that no
// point is forgotten), and there it raises, is cancelled, kills its own backend, or waits while another session goes on.
//
// TestEveryCrashPoint: an operation dies at each point it passes, or its COMMIT's reply is lost; others go on; afterwards
// doctor finds nothing at rest, and the outcome is that of the operation done once or not at all.
// TestEveryInterleaving: two operations on the same task, switched at their points; no deadlock, and the outcome is that of
// some order one after the other.
//
// A sample runs by default, its seed printed; PAWL_TEST_SEED=n runs that one again, PAWL_TEST_CASES=n a larger one,
// PAWL_TEST_ONLY="entity: cancel / report" those whose names contain that, PAWL_TEST_EXHAUSTIVE=1 all crashes and all meetings
// with one switch (hours; go test needs -timeout 0), PAWL_TEST_EXHAUSTIVE=2 those with two (days).
package crash
