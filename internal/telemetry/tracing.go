package telemetry

import (
	"context"
	"fmt"
	"os"
	"strings"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// scope names the tracer of the engine's spans.
const scope = "github.com/pawl-dev/pawl"

// Tracing makes spans. The zero value makes none and costs nothing.
type Tracing struct {
	provider trace.TracerProvider
	shutdown func(context.Context) error
}

// NewTracing uses a provider that somebody else owns, such as a test's with an in-memory exporter.
func NewTracing(provider trace.TracerProvider) *Tracing { return &Tracing{provider: provider} }

// TracingFromEnvironment exports spans over OTLP (http/protobuf) when OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set; else it makes none. The other OTEL_ variables (headers, timeout, sampler,
// service name, resource attributes, OTEL_SDK_DISABLED) mean what OpenTelemetry says. service is the default for
// OTEL_SERVICE_NAME.
func TracingFromEnvironment(ctx context.Context, service string) (*Tracing, error) {
	if !exporterWanted() {
		return &Tracing{}, nil
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		protocol := os.Getenv(name)
		if protocol == "" {
			continue
		}
		if protocol != "http/protobuf" {
			return nil, fmt.Errorf("exporting traces: %s is %.20q, and only http/protobuf is built in: set it so, and the endpoint to the collector's HTTP port", name, protocol)
		}
		break
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("exporting traces as OTEL_EXPORTER_OTLP_* say: %w", err)
	}
	about, err := resource.New(ctx, resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, fmt.Errorf("reading OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	about, err = resource.Merge(resource.NewSchemaless(serviceName(service)), about)
	if err != nil {
		return nil, fmt.Errorf("reading OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return &Tracing{provider: provider, shutdown: provider.Shutdown}, nil
}

func exporterWanted() bool {
	endpoint := os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") + os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	return endpoint != "" && !strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") &&
		os.Getenv("OTEL_TRACES_EXPORTER") != "none"
}

// Enabled says whether spans go anywhere. What only serves spans can be left out otherwise.
func (t *Tracing) Enabled() bool { return t != nil && t.provider != nil }

// Provider of tracers, for parts that make spans of their own; one that makes none when tracing is off.
func (t *Tracing) Provider() trace.TracerProvider {
	if !t.Enabled() {
		return noop.NewTracerProvider()
	}
	return t.provider
}

// Tracer of the engine's spans.
func (t *Tracing) Tracer() trace.Tracer {
	if !t.Enabled() {
		return noop.Tracer{}
	}
	return t.provider.Tracer(scope)
}

// Shutdown sends what is left, as long as ctx allows.
func (t *Tracing) Shutdown(ctx context.Context) error {
	if t == nil || t.shutdown == nil {
		return nil
	}
	return t.shutdown(ctx)
}

// WithTraceparent returns ctx as a part of the trace that a message's traceparent names; a malformed one changes nothing.
func WithTraceparent(ctx context.Context, traceparent string) context.Context {
	if traceparent == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceparent})
}

// Traceparent is the W3C form of the span in ctx, or "".
func Traceparent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}
