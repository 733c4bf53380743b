package actors

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/pawl-dev/pawl/internal/store"
	"github.com/pawl-dev/pawl/internal/telemetry"
)

// Listener wakes consumers; messaging/pgmq has one.
type Listener interface {
	// Subscribe returns a channel that gets a value when the database channel is notified, and the end of it.
	Subscribe(channel string) (<-chan struct{}, func())
	// Proven says whether notifications are known to arrive.
	Proven() bool
}

// Config of Start. Work, Heartbeats, Metrics and Processor are required; the zero value of the rest is the default.
type Config struct {
	// Work is the pool that reads and works messages. Its connections should have lock_timeout 5 s and a
	// statement_timeout under a third of VisibilityTimeout.
	Work store.DB
	// Heartbeats is a pool that work cannot exhaust.
	Heartbeats store.DB
	// Listener wakes the consumers. Nil: they poll.
	Listener Listener
	// Processor is this process, for the audit and its heartbeat.
	Processor store.Processor
	// Metrics counts what happens.
	Metrics *telemetry.Metrics
	// Tracing makes spans. Nil: none.
	Tracing *telemetry.Tracing
	// Log. Nil: slog.Default().
	Log *slog.Logger

	// Settings of all actors.
	Settings
}

// Settings say how much the actors do at once and how often they look. The zero value is the default.
type Settings struct {
	// Batch is how many messages a consumer works at once. Default 200.
	Batch int
	// BatchBytes bounds a batch's bodies, in bytes as stored. Default 8 MiB.
	BatchBytes int64
	// VisibilityTimeout of the engine's messages: after it, the messages of a process that died are delivered again.
	// Default 30 s.
	VisibilityTimeout time.Duration
	// RequestLoops and ResultLoops are how many consumers work a queue side by side. Default 1: few with full batches
	// beat many with thin ones.
	RequestLoops, ResultLoops int
	// MaxDeliveries after which a message that fails alone through a timeout, a lost connection, a panic or an error
	// internal to the server is a dead letter. Default 10.
	MaxDeliveries int

	// IdlePoll is the time between looks at all queues, and of the clock, when nothing wakes them. Default 1 s.
	IdlePoll time.Duration
	// ProvenPoll is IdlePoll for the queues while the listener is proven. Default 5 s.
	ProvenPoll time.Duration
	// HeartbeatEvery is the time between heartbeats of the processor. Default 5 s.
	HeartbeatEvery time.Duration
	// ReconcileEvery is the time between passes of the reconciler. Default 10 s.
	ReconcileEvery time.Duration
	// ReconcileGrace is how long work must have been idle before the reconciler looks at it. Default 1 m.
	ReconcileGrace time.Duration
	// SweepEvery is the time between sweeps of retention. Default 1 h.
	SweepEvery time.Duration
	// RestartMin and RestartMax bound the back-off between restarts of an actor that panics; it doubles from the one to
	// the other, and begins anew after a minute without a panic. Defaults 100 ms and 30 s.
	RestartMin, RestartMax time.Duration
}

// WithDefaults is the Config with its zero values replaced.
func (c Config) WithDefaults() Config {
	c.Settings = c.Settings.WithDefaults()
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// WithDefaults are the Settings with their zero values replaced.
func (s Settings) WithDefaults() Settings {
	s.Batch = cmp.Or(s.Batch, 200)
	s.BatchBytes = cmp.Or(s.BatchBytes, 8<<20)
	s.VisibilityTimeout = cmp.Or(s.VisibilityTimeout, 30*time.Second)
	s.RequestLoops = cmp.Or(s.RequestLoops, 1)
	s.ResultLoops = cmp.Or(s.ResultLoops, 1)
	s.MaxDeliveries = cmp.Or(s.MaxDeliveries, 10)
	s.IdlePoll = cmp.Or(s.IdlePoll, time.Second)
	s.ProvenPoll = cmp.Or(s.ProvenPoll, 5*time.Second)
	s.HeartbeatEvery = cmp.Or(s.HeartbeatEvery, 5*time.Second)
	s.ReconcileEvery = cmp.Or(s.ReconcileEvery, 10*time.Second)
	s.ReconcileGrace = cmp.Or(s.ReconcileGrace, time.Minute)
	s.SweepEvery = cmp.Or(s.SweepEvery, time.Hour)
	s.RestartMin = cmp.Or(s.RestartMin, 100*time.Millisecond)
	s.RestartMax = max(cmp.Or(s.RestartMax, 30*time.Second), s.RestartMin)
	return s
}
