// Package doctor asks a database whether Pawl's invariants hold, in one read-only snapshot, while everything runs or at
// rest. The invariants are SQL, one file for each group in checks/; a comment says where one differs from what it could be
// on another schema. Every invariant has a mutation in the tests that it must find.
//
//	A transitions and audit    B tasks, steps, counters    C messages       D attempts
//	E identities and claims    F gates, dead letters       G progress       H the database around the engine
package doctor
