// Package model holds a small reference of the engine, plain maps and a virtual clock, and a test that lets both live through
// the same random operations on tasks of random DAGs and compares everything after each: tasks, counters, steps, messages,
// keys of tasks and of steps, what a gate holds, what was absorbed. It is written from the documents, not from the SQL: one
// settling function instead of set logic. Where the documents leave a choice, which waiter is next, it takes the engine's.
package model
