package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
)

// Queryer is what a Collector reads from: a pool.
type Queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Collector reads what the database knows when it is scraped: depth and age of queues, tasks by state, dead letters,
// held steps. Counting reads whole tables, so the figures are kept until twenty times as long has passed as they took to get,
// at least a second: scraping costs the database at most a twentieth of one connection, however often and by however
// many it is done. Whether the database answers is asked at each scrape, once a second at most.
type Collector struct {
	db  Queryer
	log *slog.Logger

	mu sync.Mutex
	// These are guarded by mu.
	kept  []prometheus.Metric // the figures
	until time.Time
	up    float64
	asked time.Time // when up was last found
}

// NewCollector makes a collector; register it with the registry that is scraped.
func NewCollector(db Queryer, log *slog.Logger) *Collector { return &Collector{db: db, log: log} }

const (
	// scrapeTimeout bounds one scrape's queries together: each figure has half of what is left, the last one all of it.
	scrapeTimeout = 8 * time.Second
	pingTimeout   = 2 * time.Second
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("pawl_"+name, help, labels, nil)
}

var (
	queueMessages = describe("queue_messages", "Messages in a queue, invisible ones included.", "queue")
	queueVisible  = describe("queue_visible_messages", "Messages in a queue that a read would return now.", "queue")
	queueMissing  = describe("queue_missing", "1 when the table of a queue is gone, which the other figures of queues then leave out.", "queue")
	queueAge      = describe("queue_oldest_message_age_seconds", "Age of the oldest message in a queue.", "queue")
	tasksByState  = describe("tasks", "Tasks by state.", "state")
	deadOpen      = describe("dead_letters_open", "Dead letters that nobody has redriven or dropped.", "queue")
	heldSteps     = describe("held_steps", "Steps that a gate holds back.", "queue")
	stuckTasks    = describe("stuck_tasks", "Tasks longer in a state than their template allows, as the reconciler reported them.", "state")
	databaseUp    = describe("database_up", "1 when the database answered the last scrape.")
)

// figures are the queries of a scrape: each returns a label and as many values as it has descriptions. Those that count
// large tables come last.
var figures = []struct {
	sql    string
	values []*prometheus.Desc
}{
	{`select queue, count(*)::float8 from pawl.dead_letters where status = 'open' group by queue`, []*prometheus.Desc{deadOpen}},
	{`select state, count(*)::float8 from pawl.stuck_reports where ended_at is null group by state`, []*prometheus.Desc{stuckTasks}},
	{`select queue, (to_regclass(format('pgmq.%I', 'q_' || queue)) is null)::int::float8 from pawl.queues`, []*prometheus.Desc{queueMissing}},
	{`select queue, count(*)::float8 from pawl.held_steps where released_at is null group by queue`, []*prometheus.Desc{heldSteps}},
	{`select m.queue_name::text, m.queue_length::float8, m.queue_visible_length::float8, coalesce(m.oldest_msg_age_sec, 0)::float8
	  from pawl.queues q cross join lateral pgmq.metrics(q.queue) m
	  where to_regclass(format('pgmq.%I', 'q_' || q.queue)) is not null`, []*prometheus.Desc{queueMessages, queueVisible, queueAge}},
	{`select s.state::text, count(t.state)::float8 from unnest(enum_range(null::pawl.task_state)) s(state)
	  left join pawl.tasks t on t.state = s.state group by s.state`, []*prometheus.Desc{tasksByState}},
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- databaseUp
	for _, f := range figures {
		for _, d := range f.values {
			ch <- d
		}
	}
}

// Collect implements prometheus.Collector. A database that does not answer is pawl_database_up 0 alone, never a failed scrape.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	began := time.Now()
	if began.Sub(c.asked) >= time.Second {
		c.up = c.ping()
		c.asked = time.Now()
	}
	ch <- prometheus.MustNewConstMetric(databaseUp, prometheus.GaugeValue, c.up)
	if c.up == 0 {
		return
	}
	if !began.Before(c.until) {
		c.kept = c.read(began.Add(scrapeTimeout))
		c.until = time.Now().Add(max(20*time.Since(began), time.Second))
	}
	for _, m := range c.kept {
		ch <- m
	}
}

// read asks for all figures. One that fails or takes too long is left out: alerts look at the others.
func (c *Collector) read(until time.Time) []prometheus.Metric {
	var found []prometheus.Metric
	for i, f := range figures {
		limit := time.Until(until)
		if i < len(figures)-1 {
			limit /= 2
		}
		values, err := c.figure(limit, f.sql, f.values)
		if err != nil {
			c.log.Warn("reading a metric from the database", "metric", f.values[0].String(), "error", err)
			continue
		}
		found = append(found, values...)
	}
	return found
}

// ping is 1 when the database answers.
func (c *Collector) ping() float64 {
	if _, err := c.figure(pingTimeout, `select ''`, nil); err != nil {
		c.log.Warn("reading metrics from the database", "error", err)
		return 0
	}
	return 1
}

// figure is what one query finds, or nothing.
func (c *Collector) figure(limit time.Duration, sql string, descriptions []*prometheus.Desc) ([]prometheus.Metric, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	rows, err := c.db.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	var label string
	values := make([]float64, len(descriptions))
	targets := []any{&label}
	for i := range values {
		targets = append(targets, &values[i])
	}
	var found []prometheus.Metric
	if _, err := pgx.ForEachRow(rows, targets, func() error {
		for i, d := range descriptions {
			found = append(found, prometheus.MustNewConstMetric(d, prometheus.GaugeValue, values[i], label))
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return found, nil
}
