// Command sdkrun runs a command, such as the tests of an SDK, with a private Postgres and an orchestrator: their addresses
// are in PAWL_DATABASE_URL, and PAWL_URL with PAWL_TOKEN. The database is quicker than a real one: it may lose what it
// holds when its machine dies.
package main
