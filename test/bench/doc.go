// Command bench measures Pawl beside raw PGMQ and its peers on one Postgres with durable settings: the same work, in turns,
// in one run. It is a module of its own, so that the peers are no dependency of Pawl; those from npm are in peers/, each a
// process that speaks lines (peers/peer.js).
//
// The figures are ratios of one run: the machine is shared and its speed drifts. Every engine gets a database of its own on
// the same server; rounds are interleaved; each run is as long as -seconds says, by its own warm-up.
//
// What else it measures: submitting on one connection (submits.go), latency while tasks come at a rate (-rates), and Pawl
// in a database that holds much (-growth). notes.md, which ends docs/benchmarks.md, says how the peers were set.
package main
