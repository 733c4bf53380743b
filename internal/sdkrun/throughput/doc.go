// Command throughput measures how many steps one worker process of each language does in a second: the workers take turns,
// round by round, on one private database with one orchestrator. In each turn the steps are ready in a queue of their own
// before the worker starts; the clock, which is the database's, runs from its first claim to its last result.
package main
