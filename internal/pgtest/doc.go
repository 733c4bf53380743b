// Package pgtest gives tests a real Postgres with PGMQ and all of Pawl's SQL.
//
// The server's address comes from PAWL_TEST_DATABASE_URL (set by internal/testrun, the wrapper behind `make test`); when
// that is unset the test processes share a server in the cache folder, so that a plain `go test ./x` works. A database
// with everything in it is made once per state of the SQL files and cloned for each test.
package pgtest
