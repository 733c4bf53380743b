// Package workerapi is the SQL worker API over HTTP, for workers without access
// to the database: POST /v1/worker/claim, report, extend and release take the
// arguments of pawl.claim_steps, report_steps, extend_leases and release_steps as
// a JSON object and answer with what the function returns, byte for byte.
//
// Requests carry the token as "Authorization: Bearer …". What is not understood
// is refused before the database is asked. Errors are JSON objects {error,
// message, request_id}: error is a word to branch by, message says what to do.
// Answers of status 503 may be repeated as they are: all four calls are fenced.
package workerapi
