package main

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pawl-dev/pawl/internal/config"
	shop "github.com/pawl-dev/pawl/internal/demo/handlers"
	"github.com/pawl-dev/pawl/internal/handlers"
	"github.com/pawl-dev/pawl/internal/telemetry"
	"github.com/pawl-dev/pawl/worker"
)

// service is what a worker's process is made of.
type service struct {
	settings config.Worker
	queues   []worker.Queue
	pool     *pgxpool.Pool
	log      *slog.Logger
	registry *prometheus.Registry
}

// parseQueues reads "name" or "name:concurrency".
func parseQueues(names []string, concurrency int) ([]worker.Queue, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("no queue is named; set --queues, as in --queues shop_queue:32,mail_queue:4")
	}
	var queues []worker.Queue
	for _, text := range names {
		name, number, given := strings.Cut(text, ":")
		q := worker.Queue{Name: name, Concurrency: concurrency}
		if given {
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("queue %q: after the colon goes how many handlers run at once, 1 or more", text)
			}
			q.Concurrency = n
		}
		queues = append(queues, q)
	}
	return queues, nil
}

func (p *service) worker(tracing *telemetry.Tracing) (*worker.Worker, error) {
	settings := worker.Config{
		Pool: p.pool, Queues: p.queues, Name: p.settings.Name, Grace: p.settings.Grace, Poll: p.settings.Poll,
		ProvenPoll: p.settings.ProvenPoll, ListenerURL: p.settings.ListenerURL, Log: p.log, Metrics: p.registry,
	}
	if settings.ListenerURL == config.Off {
		settings.ListenerURL, settings.NoListen = "", true
	}
	if tracing.Enabled() {
		settings.Tracer = tracing.Provider()
	}
	w, err := worker.New(settings)
	if err != nil {
		return nil, err
	}
	sets := handlers.Sets()
	sets["shop"] = func(w *worker.Worker) { shop.Register(w, &shop.Shop{DB: p.pool}) }
	return w, handlers.Register(w, sets, p.settings.Handlers)
}
