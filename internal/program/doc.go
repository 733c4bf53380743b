// Package program is what the binaries have in common: settings from flags, variables and a file, logs, signals, exit
// codes, a start that waits for a database which cannot be reached yet, and other programs that they run.
package program
