// Package cachedir names the folder in which set-up keeps what it fetched: PGMQ's SQL, Postgres binaries, the linter
// and the shared test server. Losing the folder costs time only.
package cachedir
