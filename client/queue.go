package client

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Queue is a queue that Pawl knows.
type Queue struct {
	Name   string
	Engine bool // one of the engine's own
	Paused bool
	// Missing says that its table is gone: somebody dropped it. Configuring, pausing or resuming the queue, or applying a
	// template that names it, makes it anew; the attempts whose messages it held then end as lost.
	Missing bool
	// Depth counts all messages, Visible those that a worker may take now: the rest are leased or delayed. Oldest is the
	// age of the oldest one. Held counts the steps that a limit or a pause keeps from the queue.
	Depth, Visible, Held int64
	Oldest               time.Duration
	// RateLimit in RatePeriod, Burst and MaxConcurrency are its limits, 0 is none.
	RateLimit, Burst, MaxConcurrency int
	RatePeriod                       time.Duration
	Retention                        time.Duration // of finished one-step tasks on the queue, 0 is the default
}

// Queues returns all queues with their depths, the engine's own last.
func (c *Client) Queues(ctx context.Context) ([]Queue, error) {
	read := func(row pgx.CollectableRow) (q Queue, err error) {
		var oldest, period, retention float64
		err = row.Scan(&q.Name, &q.Engine, &q.Paused, &q.Missing, &q.Depth, &q.Visible, &q.Held, &oldest, &q.RateLimit, &q.Burst, &q.MaxConcurrency, &period, &retention)
		q.Oldest, q.RatePeriod, q.Retention = seconds(oldest), seconds(period), seconds(retention)
		return q, err
	}
	queues, err := list(ctx, c, read, `
		select q.queue, q.engine, q.paused, m.queue_name is null, coalesce(m.queue_length, 0), coalesce(m.queue_visible_length, 0),
			coalesce(h.held, 0), coalesce(m.oldest_msg_age_sec, 0)::float8,
			coalesce(q.rate_limit, 0), coalesce(q.burst, 0), coalesce(q.max_concurrency, 0), coalesce(extract(epoch from q.rate_period), 0)::float8,
			coalesce(extract(epoch from q.retention), 0)::float8
		from pawl.queues q
		left join (select m.* from pawl.queues there cross join lateral pgmq.metrics(there.queue) m
			where to_regclass(format('pgmq.%I', 'q_' || there.queue)) is not null) m on m.queue_name = q.queue
		left join (select queue, count(*) as held from pawl.held_steps where released_at is null group by queue) h on h.queue = q.queue
		order by q.engine, q.queue`)
	if err != nil {
		return nil, fmt.Errorf("listing queues: %w", err)
	}
	return queues, nil
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// QueueSettings are the limits of a queue to set. What is nil stays as it is; a pointer to the zero value takes the
// setting back.
type QueueSettings struct {
	RateLimit      *string // such as "100/sec"
	Burst          *int
	MaxConcurrency *int
	Retention      *string // of one-step tasks on the queue, such as "7d"
	Paused         *bool
}

// ConfigureQueue sets limits of a queue, for all orchestrators at once. A queue that does not exist is made.
func (c *Client) ConfigureQueue(ctx context.Context, queue string, settings QueueSettings, by By) (Outcome, error) {
	named := make(map[string]any)
	set(named, "rate_limit", settings.RateLimit)
	set(named, "burst", settings.Burst)
	set(named, "max_concurrency", settings.MaxConcurrency)
	set(named, "retention", settings.Retention)
	if settings.Paused != nil {
		named["paused"] = *settings.Paused
	}
	text, err := json.Marshal(named)
	if err != nil {
		return Outcome{}, fmt.Errorf("configuring queue %q: %w", queue, err)
	}
	return c.command(ctx, `pawl.configure_queue($1::text, $2::text::jsonb, $3::text, $4::text)`, queue, string(text), by.Actor, by.Reason)
}

func set[T comparable](named map[string]any, name string, value *T) {
	var zero T
	switch {
	case value == nil:
	case *value == zero:
		named[name] = nil
	default:
		named[name] = *value
	}
}

// PauseQueue starts and hands out nothing of a queue until ResumeQueue. What workers hold already goes on.
func (c *Client) PauseQueue(ctx context.Context, queue string, by By) (Outcome, error) {
	return c.command(ctx, `pawl.pause_queue($1::text, $2::text, $3::text)`, queue, by.Actor, by.Reason)
}

// ResumeQueue ends a pause.
func (c *Client) ResumeQueue(ctx context.Context, queue string, by By) (Outcome, error) {
	return c.command(ctx, `pawl.resume_queue($1::text, $2::text, $3::text)`, queue, by.Actor, by.Reason)
}
