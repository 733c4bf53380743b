// Package devpg runs a private, real Postgres for tests, the demo and `pawl dev`: own folder, loopback, free port.
//
// The server stops with the process that started it, even when that is killed with SIGKILL: a small shell process holds
// the reading end of a pipe whose writing end only the starter has, and stops the server at the end of file. Share
// instead keeps one server for many test processes, alive while any of them lives.
package devpg
