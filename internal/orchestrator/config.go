package orchestrator

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/pawl-dev/pawl/actors"
	"github.com/pawl-dev/pawl/internal/config"
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
	// Settings of the actors.
	actors.Settings

	// Logger. Default: slog.Default().
	Logger *slog.Logger
	// Registry of the metrics, served at /metrics; they are in it until Stop. Default: one of its own.
	Registry *prometheus.Registry
	// Tracing makes spans. Default: as the OTEL_EXPORTER_OTLP_ variables say, none without them.
	Tracing *telemetry.Tracing
}

func (c Config) withDefaults() Config {
	if c.ListenerURL == "" {
		c.ListenerURL = c.DatabaseURL
	}
	if c.Listen == "" {
		c.Listen = config.Off
	}
	if c.Connections == 0 {
		c.Connections = 10
	}
	if c.Grace == 0 {
		c.Grace = 20 * time.Second
	}
	c.Settings = c.Settings.WithDefaults()
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
		c.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	}
	return c
}
