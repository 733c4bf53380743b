// Command sdkrun runs a command, such as the tests of an SDK, with a private Postgres and an orchestrator: their
// addresses are in PAWL_DATABASE_URL, and PAWL_URL with PAWL_TOKEN. With
// --durable before the command the database keeps its promises over a crash; without, it is quicker than a real one.
package main
