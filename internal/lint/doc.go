// Package lint holds the rules of the house that no linter knows, as ordinary tests over the module's files.
package lint
