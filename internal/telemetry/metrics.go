package telemetry

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are what a process counts itself; what the database knows is read by Collector when somebody asks.
type Metrics struct {
	Messages    *prometheus.CounterVec   // queue: messages worked and gone
	Returned    *prometheus.CounterVec   // queue: messages left for a later delivery after an error
	DeadLetters *prometheus.CounterVec   // queue: messages this process moved to the dead letters
	Outcomes    *prometheus.CounterVec   // queue, outcome: what became of requests and finalizations
	Batch       *prometheus.HistogramVec // queue: seconds from a batch in hand to its commit
	BatchSize   *prometheus.HistogramVec // queue: messages in a batch
	Errors      *prometheus.CounterVec   // part, kind: errors of the database, by class
	Deadlocks   prometheus.Counter       // 40P01 seen; each is a bug
	Repairs     *prometheus.CounterVec   // cause: what the reconciler repaired
	Fired       prometheus.Counter       // due times that passed
	Released    prometheus.Counter       // held steps that gates released
	Swept       *prometheus.CounterVec   // kind: rows that retention removed
	Restarts    *prometheus.CounterVec   // actor: restarts after a panic
	Listening   prometheus.Gauge         // 1 while notifications are proven to arrive
}

// NewMetrics registers a process's counters. Registering twice with one registry is an error.
func NewMetrics(registry prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		Messages:    counter("messages_processed_total", "Messages of the engine's queues that were worked.", "queue"),
		Returned:    counter("messages_returned_total", "Messages left for a later delivery after an error.", "queue"),
		DeadLetters: counter("dead_letters_total", "Messages of the engine's queues that became dead letters because they failed alone.", "queue"),
		Outcomes:    counter("outcomes_total", "What became of task requests and finalizations that came through their queues.", "queue", "outcome"),
		Batch:       histogram("batch_seconds", "Time to work one batch.", prometheus.ExponentialBuckets(0.001, 2, 15), "queue"),
		BatchSize:   histogram("batch_messages", "Messages in one batch.", []float64{1, 2, 5, 10, 20, 50, 100, 200, 500}, "queue"),
		Errors:      counter("database_errors_total", "Errors of the database, by part and class.", "part", "kind"),
		Repairs:     counter("repairs_total", "Steps and tasks that the reconciler repaired; cause engine is a bug.", "cause"),
		Swept:       counter("swept_rows_total", "Rows that retention removed.", "kind"),
		Restarts:    counter("actor_restarts_total", "Restarts of actors after a panic.", "actor"),
		Deadlocks:   prometheus.NewCounter(opts("deadlocks_total", "Deadlocks that the database reported; each is a bug.")),
		Fired:       prometheus.NewCounter(opts("due_fired_total", "Due times of tasks and steps that were acted on.")),
		Released:    prometheus.NewCounter(opts("held_released_total", "Held steps that gates released.")),
		Listening: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "pawl", Name: "listener_proven",
			Help: "1 while database notifications are proven to arrive, else 0 and consumers poll."}),
	}
	for _, c := range []prometheus.Collector{m.Messages, m.Returned, m.DeadLetters, m.Outcomes, m.Batch, m.BatchSize, m.Errors,
		m.Deadlocks, m.Repairs, m.Fired, m.Released, m.Swept, m.Restarts, m.Listening} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	m.Repairs.WithLabelValues("engine") // 0 is worth seeing
	m.Repairs.WithLabelValues("foreign")
	return m, nil
}

func opts(name, help string) prometheus.CounterOpts {
	return prometheus.CounterOpts{Namespace: "pawl", Name: name, Help: help}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(opts(name, help), labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "pawl", Name: name, Help: help, Buckets: buckets}, labels)
}
