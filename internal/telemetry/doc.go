// Package telemetry sets up what a binary says about itself: logs (slog), traces (OpenTelemetry) and metrics
// (Prometheus). Nothing leaves the process unless the usual OTEL_EXPORTER_OTLP_* variables name a collector.
//
// A task is one trace: its context travels as W3C traceparent in PGMQ headers from the producer to orchestrators and
// workers. Neither logs nor spans nor metrics hold payloads.
package telemetry
