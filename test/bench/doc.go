// Command bench measures Pawl beside raw PGMQ and its peers on one Postgres with durable settings: the same work, in turns,
// in one run. It is a module of its own, so that the peers are no dependency of Pawl.
//
// The figures are ratios of one run: the machine is shared and its speed drifts. Every engine gets a database of its own on
// the same server; rounds are interleaved; each run is as long as -seconds says, by its own warm-up.
package main
