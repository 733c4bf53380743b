// Command goworker is the worker that the conformance kit runs for Go.
package main
