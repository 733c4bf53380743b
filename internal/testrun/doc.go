// Command testrun gives one private Postgres to a whole `go test`: it starts the server, runs its arguments as a command
// with PAWL_TEST_DATABASE_URL set, stops the server and ends with the command's exit code. When the variable is set
// already, that server is used and nothing is started.
//
//	go run ./internal/testrun go test ./...
package main
