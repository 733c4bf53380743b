// Package cli is the command line `pawl`: one file per group of commands.
//
// Commands read the public tables and call the public SQL functions of schema pawl; they decide nothing themselves.
// Every command prints for people, or JSON with --json, and ends with one of the codes of exit.go.
package cli
