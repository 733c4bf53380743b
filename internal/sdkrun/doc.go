// Command sdkrun runs a command, such as the tests of an SDK, with a private Postgres and an orchestrator: their
// addresses are in PAWL_DATABASE_URL, and PAWL_URL with PAWL_TOKEN.
package main
