// Package workflow is the domain of Pawl: the states of tasks and steps, the
// transitions between them, and the templates that tasks are made from.
//
// It is pure: no I/O, no clock, no goroutine; [ParseFS] reads the file system
// that it is handed, and nothing else. What stands here stands here
// once: the rows of pawl.legal_transitions are generated from [LegalTransitions],
// and the definition that the database keeps of a template is made by
// [Template.Definition].
package workflow

//go:generate go run ../internal/gen/transitions -out ../sql/migrations/0002_transitions.sql
