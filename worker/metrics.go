package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawl-dev/pawl/messaging"
)

// metrics of all workers that share a registerer. Its methods work on nil: no metrics.
type metrics struct {
	steps     *prometheus.CounterVec
	durations *prometheus.HistogramVec
	calls     *prometheus.HistogramVec
	reports   *prometheus.HistogramVec
	tooLate   *prometheus.CounterVec
	leases    *prometheus.CounterVec
	beats     *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	if registerer == nil {
		return nil, nil
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "pawl", Subsystem: "worker", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "pawl", Subsystem: "worker", Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &metrics{
		steps:     counter("steps_total", "Steps whose end was reported.", "queue", "handler", "status"),
		durations: histogram("handler_seconds", "How long handlers ran.", prometheus.ExponentialBuckets(0.001, 4, 9), "queue", "handler"),
		calls:     histogram("call_seconds", "How long calls to the database took.", prometheus.ExponentialBuckets(0.0005, 4, 8), "queue", "call"),
		reports:   histogram("reports", "Reports in one call.", prometheus.ExponentialBuckets(1, 2, 9), "queue"),
		tooLate:   counter("late_reports_total", "Reports that came too late to count.", "queue"),
		leases:    counter("lost_leases_total", "Leases that were lost while the handler ran.", "queue"),
		beats:     counter("beats_total", "Calls that extended leases.", "queue", "ok"),
	}
	err := errors.Join(register(registerer, &m.steps), register(registerer, &m.durations), register(registerer, &m.calls),
		register(registerer, &m.reports), register(registerer, &m.tooLate), register(registerer, &m.leases), register(registerer, &m.beats))
	if err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return m, nil
}

// register registers a collector, or takes the one that another worker of the process has registered.
func register[T prometheus.Collector](registerer prometheus.Registerer, collector *T) error {
	err := registerer.Register(*collector)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(T); ok {
			*collector = existing
			return nil
		}
	}
	return err
}

func (m *metrics) ended(d *delivery, status messaging.ResultStatus) {
	if m != nil {
		m.steps.WithLabelValues(d.lane.queue, d.Handler, string(status)).Inc()
	}
}

func (m *metrics) ran(d *delivery, took time.Duration) {
	if m != nil {
		m.durations.WithLabelValues(d.lane.queue, d.Handler).Observe(took.Seconds())
	}
}

func (m *metrics) called(queue, kind string, took time.Duration, reports int) {
	if m == nil {
		return
	}
	m.calls.WithLabelValues(queue, kind).Observe(took.Seconds())
	if reports > 0 {
		m.reports.WithLabelValues(queue).Observe(float64(reports))
	}
}

func (m *metrics) late(queue string) {
	if m != nil {
		m.tooLate.WithLabelValues(queue).Inc()
	}
}

func (m *metrics) lost(queue string) {
	if m != nil {
		m.leases.WithLabelValues(queue).Inc()
	}
}

func (m *metrics) beat(queue string, ok bool) {
	if m != nil {
		m.beats.WithLabelValues(queue, fmt.Sprint(ok)).Inc()
	}
}
