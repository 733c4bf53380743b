// Command throughput measures how many steps one Go worker process does in a second, as the commands of that name of the
// other SDKs do: the steps are ready before the clock starts, and their handler does nothing.
package main
