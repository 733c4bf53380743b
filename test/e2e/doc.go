// Package e2e tests the built binaries from outside: processes, signals, exit codes, tables.
package e2e
