package conformance

import "context"

// Level is how a worker talks to the engine.
type Level int

// The three levels of docs/workers.md.
const (
	LevelPGMQ Level = 1 // reads its queue and sends results with PGMQ's own functions
	LevelSQL  Level = 2 // pawl.claim_steps and its sisters
	LevelHTTP Level = 3 // the same over HTTP
)

// check is one row of the table.
type check struct {
	// Name says what holds when it passes.
	Name string
	// Run returns what does not hold.
	Run func(ctx context.Context, k *kit) error
	// Cannot says for levels that cannot pass why not.
	Cannot map[Level]string
	// Alone: it disturbs others, and runs when all of those have ended.
	Alone bool
}

// checks in the order of the table. The last one stops the worker.
func checks() []check {
	return append(append(messageChecks(), failureChecks()...), lifeChecks()...)
}

// noLease is why level 1 cannot pass what needs a heartbeat.
func noLease(why string) map[Level]string { return map[Level]string{LevelPGMQ: why} }

// Names of all checks, in the order of the table.
func Names() (names []string) {
	for _, c := range checks() {
		names = append(names, c.Name)
	}
	return names
}
