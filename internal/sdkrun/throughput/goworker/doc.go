// Command goworker is the Go worker whose throughput is measured: its handler does nothing.
package main
