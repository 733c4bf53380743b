// Package model holds a small reference of the engine, plain maps and a virtual clock, and a test that lets both live through
// the same random operations on tasks of random DAGs and compares everything after each: tasks, counters, steps, messages,
// keys, what was absorbed. It is written from the documents, not from the SQL: one settling function instead of set logic.
package model
