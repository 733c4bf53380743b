package orchestrator

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/pawl-dev/pawl/internal/telemetry"
)

// Config of Start. DatabaseURL is required; the zero value of the rest is the default.
type Config struct {
	// DatabaseURL of a Postgres that `pawl migrate` has seen.
	DatabaseURL string
	// ListenerURL leads to the server itself when DatabaseURL leads through a transaction pooler. "off": no listener, the
	// orchestrator polls. Default: DatabaseURL.
	ListenerURL string
	// Listen is the address of /healthz, /readyz, /metrics and /v1/worker/; port 0 is a free one. Default: "off".
	Listen string
	// WorkerToken that workers must send to /v1/worker/. Default: none, the API is off.
	WorkerToken string
	// Park starts although entity claims of templates have no janitor, and lets these templates' requests wait.
	Park bool

	// Connections of the pool that works messages. Default 10.
	Connections int
	// Grace is how long Stop lets work end, at most. Default 20 s.
	Grace time.Duration
	// Batch is how many messages are worked at once. Default 200.
	Batch int
	// BatchBytes bounds a batch's bodies, in bytes as stored. Default 8 MiB.
	BatchBytes int64
	// VisibilityTimeout after which the engine's messages of a dead process are delivered again. Default 30 s.
	VisibilityTimeout time.Duration
	// RequestLoops and ResultLoops are consumers side by side. Default 1.
	RequestLoops, ResultLoops int
	// MaxDeliveries of an engine's message that times out or panics alone, before it is a dead letter. Default 10.
	MaxDeliveries int
	// IdlePoll is the time between looks when nothing wakes the consumers. Default 1 s.
	IdlePoll time.Duration
	// ProvenPoll is IdlePoll for the queues while notifications are proven to arrive. Default 5 s.
	ProvenPoll time.Duration
	// HeartbeatEvery is the time between heartbeats. Default 5 s.
	HeartbeatEvery time.Duration
	// ReconcileEvery is the time between passes of the reconciler. Default 10 s.
	ReconcileEvery time.Duration
	// ReconcileGrace is how long work must have been idle before the reconciler looks at it. Default 1 m.
	ReconcileGrace time.Duration
	// SweepEvery is the time between sweeps of retention. Default 1 h.
	SweepEvery time.Duration
	// RestartMin and RestartMax bound the back-off of an actor that panics. Defaults 100 ms and 30 s.
	RestartMin, RestartMax time.Duration

	// Logger. Default: slog.Default().
	Logger *slog.Logger
	// Registry of the metrics, served at /metrics. Default: one of its own.
	Registry *prometheus.Registry
	// Tracing makes spans. Default: as the OTEL_EXPORTER_OTLP_ variables say, none without them.
	Tracing *telemetry.Tracing
}

func (c Config) withDefaults() Config {
	if c.ListenerURL == "" {
		c.ListenerURL = c.DatabaseURL
	}
	if c.Listen == "" {
		c.Listen = off
	}
	if c.Connections == 0 {
		c.Connections = 10
	}
	if c.Grace == 0 {
		c.Grace = 20 * time.Second
	}
	if c.VisibilityTimeout == 0 {
		c.VisibilityTimeout = 30 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
		c.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	return c
}

// off is what an address says that is not to be used.
const off = "off"
